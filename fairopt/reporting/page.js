"use strict";
// What the page does beside being read: the charts are drawn, and follow the notion and the user that the reader picks.
(() => {
  const block = JSON.parse(document.getElementById("data").textContent);
  const sets = {};
  for (const [name, { columns, rows }] of Object.entries(block.sets)) {
    sets[name] = rows.map((row) => Object.fromEntries(columns.map((column, k) => [column, row[k]])));
  }
  const state = { notion: block.notions[0] ?? null, picked: null };
  const views = [];
  const radios = [...document.querySelectorAll("input[name=notion]")];
  const buttons = [...document.querySelectorAll("button[data-user]")];
  const search = document.getElementById("pick");
  const names = new Set(search ? [...document.querySelectorAll("#names option")].map((option) => option.value) : block.users);
  const spoken = document.getElementById("spoken");

  const show = () => {
    for (const pane of document.querySelectorAll("[data-notion]")) pane.hidden = pane.dataset.notion !== state.notion;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.user === state.picked));
    if (search && search.value !== (state.picked ?? "") && document.activeElement !== search) search.value = state.picked ?? "";
    for (const row of document.querySelectorAll("tr[data-user]")) row.classList.toggle("picked", row.dataset.user === state.picked);
    return Promise.all(views.map((view) => view.signal("notion", state.notion).signal("picked", state.picked).runAsync()));
  };
  const pick = (user) => {
    state.picked = user === state.picked ? null : user;
    spoken.textContent = state.picked === null ? "No user is highlighted." : `${state.picked} is highlighted.`;
    return show();
  };

  for (const radio of radios) {
    radio.checked = radio.value === state.notion; // a browser that reloads remembers another
    radio.addEventListener("change", () => {
      state.notion = radio.value;
      spoken.textContent = `The charts and tables show ${radio.value}.`;
      show();
    });
  }
  for (const button of buttons) button.addEventListener("click", () => pick(button.dataset.user));
  if (search) {
    search.addEventListener("input", () => {
      state.picked = names.has(search.value) ? search.value : null;
      show();
    });
  }

  const draw = async () => {
    for (const [place, chart] of Object.entries(block.charts)) {
      // ast: expressions are interpreted, since the policy of the page forbids to make functions of them; it also forbids foreign styles
      const how = { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
      const { view } = await window.vegaEmbed(`#${place}`, { ...chart, datasets: sets }, how);
      view.addEventListener("click", (_, item) => {
        const user = item && item.datum && item.datum.user;
        if (typeof user === "string") pick(user);
      });
      views.push(view);
    }
    await show();
    document.documentElement.dataset.drawn = String(views.length);
  };
  // Paper has no buttons: tables that fit on a page or two are printed, but for those of charts that say as much.
  const LONGEST = 60;
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((each) => each.querySelectorAll("tr").length <= LONGEST);
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });

  draw().catch((error) => {
    console.error(error);
    document.documentElement.dataset.drawn = "failed";
  });
})();
