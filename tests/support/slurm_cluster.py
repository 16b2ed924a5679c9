"""A real Slurm on this machine, for tests: its daemons on free ports of the loopback, in a folder of their own.

Many ``slurmd -N NAME`` stand for the nodes. Every daemon is a child of this process in the foreground, and is ended by its own number.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

__all__ = ["NEEDED", "SlurmCluster", "missing"]

NEEDED = ("munged", "mariadbd", "mariadb-install-db", "mariadb", "slurmdbd", "slurmctld", "slurmd", "sacctmgr", "squeue", "sbatch")
_SHARED = """\
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
SlurmUser=root
"""
_CONF = (
    _SHARED
    + """\
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/spool/%n.pid
SlurmctldLogFile={root}/log/slurmctld
SlurmdLogFile={root}/log/slurmd.%n
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,bf_continue,bf_max_job_test=2000,default_queue_depth=1000,batch_sched_delay=1,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={root}/munge/socket
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
GresTypes=gpu
MinJobAge=5
KillWait=2
"""
)
_DBD = (
    _SHARED
    + """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
LogFile={root}/log/slurmdbd
PidFile={root}/slurmdbd.pid
"""
)


def missing() -> str:
    """Return why no Slurm can be started here; empty if one can."""
    lacking = [name for name in NEEDED if _program(name) is None]
    if lacking:
        return f"{', '.join(lacking)} not installed"
    return "" if os.geteuid() == 0 else "Slurm's daemons are started as root"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class SlurmCluster:
    """A cluster that runs between `start` and `stop`.

    Parameters
    ----------
    root : path
        A folder that does not exist, with a short path: sockets lie in it.
    nodes : mapping
        Properties of each node as in slurm.conf, by its name: ``{"gn1": "CPUs=8 RealMemory=16384 Gres=gpu:a100:2"}``.
    partitions : mapping
        Properties of each partition, by its name.
    more : str
        Lines of slurm.conf.
    """

    def __init__(self, root: Path, nodes: Mapping[str, str], partitions: Mapping[str, str], more: str = "") -> None:
        self.root, self.nodes, self.partitions, self.more = root, dict(nodes), dict(partitions), more
        self.environment = os.environ | {"SLURM_CONF": str(root / "etc" / "slurm.conf"), "SLURM_TIME_FORMAT": "standard"}
        self._daemons: list[subprocess.Popen[bytes]] = []
        controller, dbd, self._sql, *self._ports = _free_ports(3 + len(nodes))
        self._fields = {"root": root, "host": socket.gethostname(), "controller": controller, "dbd": dbd, "sql": self._sql}

    def __enter__(self) -> SlurmCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start every daemon, and wait until all nodes are idle."""
        for folder in ("etc", "state", "spool", "log", "db", "munge", "dev", "out"):
            (self.root / folder).mkdir(parents=True)
        self.root.chmod(0o755)
        self._write_configuration()
        key = self.root / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {name: f"--{name}-file={self.root}/munge/{name.replace('-', '.')}" for name in ("key", "pid", "log", "seed")}
        self._daemon("munged", "--foreground", "--force", f"--socket={self.root}/munge/socket", *files.values())
        self._start_database()
        self._daemon("slurmdbd", "-D")
        self._until(lambda: self._answers("sacctmgr", "-n", "list", "cluster"), "slurmdbd answers")
        self.run("sacctmgr", "-i", "-Q", "add", "cluster", "trial")
        self._until(lambda: self._answers("sacctmgr", "-n", "list", "account"), "the cluster is known")
        self._daemon("slurmctld", "-D")
        self._until(lambda: self._answers("scontrol", "ping"), "slurmctld answers")
        for name in self.nodes:
            (self.root / "spool" / name).mkdir()
            self._daemon("slurmd", "-D", "-N", name)
        self._until(lambda: set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}, "all nodes are idle")

    def stop(self) -> None:
        """Let no job start any more, cancel all, and end every daemon by its number, the last first."""
        with contextlib.suppress(OSError, subprocess.SubprocessError, TimeoutError):
            for name in self.partitions:
                self.run("scontrol", "update", f"PartitionName={name}", "State=DOWN")
            self.run("scancel", "--state=PENDING", "--user=root")
            self.run("scancel", "--user=root")
            self._until(lambda: not self.run("squeue", "-h", "-t", "running,completing,configuring").strip(), "no job runs", 60)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons.clear()
        for number, _ in self._processes():  # of a job that was just starting
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def left_running(self) -> list[str]:
        """Return the command lines of processes that name the folder, or work in it."""
        return [command for _, command in self._processes()]

    def _processes(self) -> Iterator[tuple[int, str]]:
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                with contextlib.suppress(OSError):
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if str(self.root) in command or os.readlink(process / "cwd").startswith(str(self.root)):
                        yield int(process.name), command

    def run(self, *command: str) -> str:
        """Run a command of Slurm and return what it prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def export(self, file: str, *command: str) -> Path:
        """Write what a command of Slurm prints to a file of the folder."""
        path = self.root / "out" / file
        path.write_text(self.run(*command))
        return path

    def _write_configuration(self) -> None:
        lines, gres = [_CONF.format(**self._fields), self.more], []
        for port, (name, properties) in zip(self._ports, self.nodes.items(), strict=True):
            lines.append(f"NodeName={name} {properties} NodeAddr=127.0.0.1 NodeHostName={self._fields['host']} Port={port}\n")
            generic = next((word.removeprefix("Gres=") for word in properties.split() if word.startswith("Gres=")), "")
            for word in filter(None, generic.split(",")):
                if word.startswith("shard:"):  # evenly on all GPUs of the node
                    gres.append(f"NodeName={name} Name=shard Count={word.removeprefix('shard:')}\n")
                else:
                    _, kind, number = word.split(":")
                    gres.append(f"NodeName={name} Name=gpu Type={kind} File={self.root}/dev/{name}-[0-{int(number) - 1}]\n")
                    for j in range(int(number)):  # as character devices, of which Slurm only looks at the name
                        os.mknod(self.root / "dev" / f"{name}-{j}", 0o666 | stat.S_IFCHR, os.makedev(195, j))
        lines += [f"PartitionName={name} {properties}\n" for name, properties in self.partitions.items()]
        for file, text in (("slurm.conf", "".join(lines)), ("gres.conf", "".join(gres)), ("slurmdbd.conf", _DBD.format(**self._fields))):
            (self.root / "etc" / file).write_text(text)
        (self.root / "etc" / "slurmdbd.conf").chmod(0o600)

    def _start_database(self) -> None:
        database, common = f"{self.root}/db", ("--no-defaults", "--user=root")
        self._quietly("mariadb-install-db", *common, f"--datadir={database}", "--skip-test-db", "--auth-root-authentication-method=socket")
        client = ("mariadb", "--no-defaults", f"--socket={self.root}/sql", "-e")
        self._daemon(
            *("mariadbd", *common, f"--datadir={database}", f"--socket={self.root}/sql", f"--port={self._sql}"),
            *("--bind-address=127.0.0.1", f"--pid-file={self.root}/sql.pid", "--innodb-buffer-pool-size=32M"),
        )
        self._until(lambda: self._answers(*client, "select 1"), "the database answers")
        grants = " ".join(f"create user slurm@'{host}' identified by 'slurm'; grant all on slurm.* to slurm@'{host}';" for host in _HOSTS)
        self._quietly(*client, f"create database slurm; {grants}")

    def _daemon(self, name: str, *arguments: str) -> None:
        program = _program(name)
        assert program is not None
        with (self.root / "log" / f"{name}.out").open("ab") as log:
            self._daemons.append(subprocess.Popen([program, *arguments], env=self.environment, stdout=log, stderr=log))

    def _quietly(self, name: str, *arguments: str) -> None:
        program = _program(name)
        assert program is not None
        subprocess.run([program, *arguments], env=self.environment, capture_output=True, timeout=120, check=True)

    def _answers(self, *command: str) -> bool:
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=60).returncode == 0

    def _until(self, condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
        for _ in self.waits(seconds):
            if condition():
                return
        raise TimeoutError(f"{what}: not within {seconds:g} s; see {self.root}/log")

    @staticmethod
    def waits(seconds: float) -> Iterator[None]:
        """Yield now and then until so many seconds have passed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            yield
            time.sleep(0.25)


_HOSTS = ("127.0.0.1", "localhost")
