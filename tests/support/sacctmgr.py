"""A stand-in for ``sacctmgr``: it carries out a script on associations and QOS, and shows them as slurmrestd and as ``show`` do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from fairopt.slurm.syntax import tres

__all__ = ["Sacctmgr"]

Key = tuple[str, str, str]  # account, user, partition


class Sacctmgr:
    """Associations with their ``GrpTRES``, and QOS with their limits: texts by setting, ``GrpJobs``, or setting and TRES."""

    def __init__(self, path: Path, qos: dict[str, dict[str, dict[str, str]]] | None = None) -> None:
        self.qos = {} if qos is None else qos
        self.parts: list[dict[str, Any]] = json.loads(path.read_text())["associations"]
        self.limits: dict[Key, dict[str, float]] = {self._key(part): {} for part in self.parts}
        self.active: set[Key] = set()  # with running jobs

    @staticmethod
    def _key(part: dict[str, Any]) -> Key:
        return part["account"], part["user"], part["partition"]

    def run(self, script: str) -> int:
        """Carry out a script, and return its exit status; a command that changes nothing is an error unless the script provides for it."""
        lines = script.splitlines()
        assert lines[0] == "#!/bin/sh"
        assert "set -e" in lines
        skipped, left = False, False
        for line in map(str.strip, lines):
            if line == "fi":
                skipped = False
            elif line.startswith("[ -z"):
                assert line.endswith("exit 1; }")
            elif skipped or line in ("set -e", "then", "left=") or not shlex.split(line, comments=True):
                continue
            else:
                words = shlex.split(line.removeprefix("if "))
                provided = words[-2:] if "||" in words else []
                words = words[: -2 if provided else None]
                assert words[:2] == ["sacctmgr", "-i"], line
                try:
                    self._do(words[2:])
                except KeyError:
                    skipped, left = line.startswith("if "), left or provided == ["||", "left=yes"]
                    assert skipped or provided, line
        return int(left)

    def _do(self, words: list[str]) -> None:
        verb, kind = words[:2]
        if kind == "qos":
            self._do_qos(verb, words[2:])
            return
        given = dict(word.split("=", 1) for word in words[2:] if "=" in word and not word.startswith("GrpTRES="))
        account, user = (given["name"], "") if kind == "account" else (given["account"], given["name"])
        key = account, user, given.get("partition", "")
        if verb == "add":
            if key in self.limits or (account, user, "") not in self.limits:
                raise KeyError(key)
            self.limits[key] = {}
        elif verb == "delete":
            if key in self.active:
                raise KeyError(key)
            del self.limits[key]
        else:
            assert verb == "modify"
            assert words[-2] == "set"
            # Without the word partition= a user's associations for single partitions are meant, too: so it is in a real Slurm.
            meant = [each for each in self.limits if each[:2] == key[:2]] if user and "partition" not in given else [key]
            for limits in (self.limits[each] for each in meant):
                for name, value in (pair.split("=") for pair in words[-1].removeprefix("GrpTRES=").split(",")):
                    if value == "-1":
                        limits.pop(name, None)
                    else:
                        limits.update(tres(f"{name}={value}"))

    def _do_qos(self, verb: str, words: list[str]) -> None:
        if verb == "add":
            if words[0] in self.qos:
                raise KeyError(words[0])
            self.qos[words[0]] = {}
            return
        assert words[0] == "where"
        name = words[1].removeprefix("name=")
        if verb == "delete":
            del self.qos[name]
            return
        assert (verb, words[2]) == ("modify", "set")
        own = self.qos[name]
        for setting, value in (word.split("=", 1) for word in words[3:]):
            if setting.startswith("Preempt"):
                listed = own.setdefault("Preempt", {})
                listed |= {value: ""} if setting == "Preempt+" else {}
                if setting == "Preempt-":
                    del listed[value]
                continue
            for key, amount in (pair.split("=") if "=" in pair else ("", pair) for pair in value.split(",")):
                own.setdefault(setting, {})[key] = amount
                if amount == "-1":
                    del own[setting][key]
        self.qos[name] = {setting: amounts for setting, amounts in own.items() if amounts}

    def to_qos_table(self, path: Path) -> Path:
        """Write ``sacctmgr -P show qos``."""
        columns = ("GrpTRES", "GrpJobs", "MaxTRESPU", "MaxJobsPU", "MaxTRESPA", "MaxJobsPA", "Preempt")
        lines = ["|".join(("Name", "Priority", *columns))]
        for name, own in self.qos.items():
            short = {setting.replace("PerUser", "PU").replace("PerAccount", "PA"): amounts for setting, amounts in own.items()}
            cells = [",".join(f"{k}={v}" if k and v else k or v for k, v in short.get(column, {}).items()) for column in columns]
            lines.append("|".join((name, "0", *cells)))
        path.write_text("\n".join(lines) + "\n")
        return path

    def to_json(self, path: Path) -> Path:
        """Write what slurmrestd answers."""
        listed = []
        for (account, user, partition), limits in self.limits.items():
            known = next((part for part in self.parts if self._key(part) == (account, user, "")), {})
            total = [{"type": name.partition("/")[0], "name": name.partition("/")[2], "count": amount} for name, amount in limits.items()]
            listed.append({**known, "account": account, "user": user, "partition": partition, "max": {"tres": {"total": total}}})
        path.write_text(json.dumps({"associations": listed}))
        return path

    def to_table(self, path: Path) -> Path:
        """Write ``sacctmgr -P show assoc``."""
        lines = ["Cluster|Account|User|Partition|Share|GrpTRES"]
        for (account, user, partition), limits in self.limits.items():
            text = ",".join(f"{name}={amount:g}{'M' if name == 'mem' else ''}" for name, amount in limits.items())
            lines.append(f"hpc|{account}|{user}|{partition}|1|{text}")
        path.write_text("\n".join(lines) + "\n")
        return path
