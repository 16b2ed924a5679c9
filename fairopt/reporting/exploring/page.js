"use strict";
// Makes the controls, asks for an answer when they rest, and shows its parts as they come.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAUSE = 150; // milliseconds that controls rest before anything is computed
  const at = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const tab = `${Date.now()}-${Math.random()}`;
  const values = {}; // by the path of a knob: what differs from the file
  let number = 0;
  let running = null;
  let resting = null;

  // Controls
  const form = at("knobs");
  const options = (select, pairs) => {
    for (const [value, text] of pairs) select.append(make("option", { value }, text));
    return select;
  };
  const notions = [];
  for (let k = 0; k < data.most; k += 1) {
    const select = make("select", { id: `notion-${k}` });
    options(select, k ? [["", "no other"], ...data.notions] : data.notions);
    select.value = k ? "" : data.notion;
    const label = make("label", { for: select.id }, k ? `Beside it${k > 1 ? ", a third" : ""}` : "Notion of fairness");
    form.append(make("p", {}, label, select));
    select.addEventListener("change", () => ask());
    notions.push(select);
  }

  const round = (value, step) => Number(value.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))));
  const knob = ({ path, name, value, high, step }, changed) => {
    const id = `knob-${path}`;
    const range = make("input", { type: "range", id, min: 0, max: high, step });
    const typed = make("input", { type: "number", min: 0, step: "any", "aria-label": `${name}: type a number` });
    const label = make("label", { for: id });
    label.append(make("bdi", {}, name));
    const row = make("div", { class: "knob" }, label, range, typed);
    const show = (current) => {
      if (current > Number(range.max)) range.max = current;
      range.value = current;
      range.setAttribute("aria-valuetext", String(current));
      typed.value = current;
      row.classList.toggle("changed", current !== value);
    };
    range.addEventListener("input", () => {
      const current = Math.abs(range.valueAsNumber - value) < step / 2 ? value : round(range.valueAsNumber, step);
      show(current);
      changed(path, current, value);
    });
    typed.addEventListener("change", () => {
      const current = Number.isFinite(typed.valueAsNumber) ? typed.valueAsNumber : value;
      show(current);
      changed(path, current, value);
    });
    show(value);
    row.reset = () => show(value);
    return row;
  };
  const rows = [];
  const changed = (path, current, value) => {
    if (current === value) delete values[path];
    else values[path] = current;
    ask();
  };

  const alpha = knob({ path: "alpha", name: "alpha of proportional fairness", value: data.alpha, high: 10, step: 0.1 }, (_, current) => {
    alpha.current = current;
    ask();
  });
  alpha.current = data.alpha;
  form.append(alpha);

  for (const section of data.sections) {
    const details = make("details", section.open ? { open: "" } : {}, make("summary", {}, section.title));
    const hidden = new Map();
    for (const each of section.knobs) {
      if (each.shown) {
        rows.push(knob(each, changed));
        details.append(rows.at(-1));
      } else {
        hidden.set(each.path, each);
      }
    }
    if (hidden.size) {
      const label = `Another one, of ${hidden.size}`;
      const id = `more-${section.title}`;
      const more = make("input", { id, list: `list-${section.title}`, type: "text", autocomplete: "off", placeholder: "type a name" });
      const list = make("datalist", { id: `list-${section.title}` });
      for (const each of hidden.values()) list.append(make("option", { value: each.name }));
      const added = make("p", {}, make("label", { for: id }, label), more, list);
      details.append(added);
      more.addEventListener("input", () => {
        const found = [...hidden.values()].find((each) => each.name === more.value);
        if (!found) return;
        hidden.delete(found.path);
        [...list.children].find((option) => option.value === found.name).remove();
        more.value = "";
        rows.push(knob(found, changed));
        added.before(rows.at(-1));
        rows.at(-1).querySelector("input").focus();
      });
    }
    form.append(details);
  }
  const reset = make("button", { type: "button" }, "Back to the file");
  reset.addEventListener("click", () => {
    for (const row of rows) row.reset();
    for (const path of Object.keys(values)) delete values[path];
    ask();
  });
  form.append(make("p", {}, reset));
  form.addEventListener("submit", (event) => event.preventDefault());
  options(at("explained"), data.explainable).addEventListener("change", () => ask());
  at("heading").textContent = document.title;

  // Answers
  const request = () => ({
    tab,
    number,
    values,
    alpha: alpha.current,
    notions: notions.map((select) => select.value).filter(Boolean),
    explained: at("explained").value,
  });
  const lines = async function* (action, asked, signal) {
    const body = JSON.stringify(asked);
    const answer = await fetch(action, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
    if (!answer.ok) throw new Error(await answer.text());
    let rest = "";
    for await (const chunk of chunks(answer.body.pipeThrough(new TextDecoderStream()))) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop();
      for (const part of parts) yield JSON.parse(part);
    }
  };
  const chunks = async function* (stream) {
    const reader = stream.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  };
  const show = (place, text) => {
    at(place).innerHTML = text; // from the server, which escapes all labels
    at(place).classList.remove("stale");
  };
  const places = data.places.filter((place) => place !== "summary");

  const answer = async () => {
    running?.abort();
    running = new AbortController();
    number += 1;
    const mine = number;
    const seen = new Set();
    let summary = "";
    try {
      for await (const { place, html } of lines("answer", request(), running.signal)) {
        if (mine !== number) return;
        if (place === "done") break;
        seen.add(place);
        if (place === "summary") summary = html;
        else show(place, html);
      }
    } catch (error) {
      if (mine !== number) return;
      seen.add("error");
      at("error").textContent = "The program that serves this page does not answer; start fairopt explore again.";
    }
    if (mine !== number) return;
    for (const place of places) {
      // beside an error, what was before stays, pale
      if (!seen.has(place) && (!seen.has("error") || place === "remarks")) show(place, "");
    }
    const spoken = new DOMParser().parseFromString(summary, "text/html").body.textContent;
    at("status").textContent = seen.has("error") ? "not computed" : spoken;
    at("main").setAttribute("aria-busy", String(seen.has("error")));
  };
  const ask = () => {
    alpha.hidden = !notions.some((select) => select.value === data.with_alpha);
    at("main").setAttribute("aria-busy", "true");
    for (const place of places) at(place).classList.add("stale");
    at("status").textContent = "computing …";
    clearTimeout(resting);
    resting = setTimeout(answer, PAUSE);
  };

  at("saving").addEventListener("submit", async (event) => {
    event.preventDefault();
    const asked = { ...request(), name: at("name").value, replace: at("replace").checked };
    for await (const { place, html } of lines("save", asked)) {
      show("saved", html);
      if (place === "written") at("replace").checked = false;
    }
  });
  ask();
})();
