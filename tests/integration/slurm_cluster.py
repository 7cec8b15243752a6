"""A Slurm cluster on this machine, as long as somebody holds the standard input of this program.

    python slurm_cluster.py FOLDER [--accounting]

As root, with Debian's packages slurmctld, slurmd, slurm-client and munge; with accounting also
slurmdbd and mariadb-server. Prints `ready` when four nodes with eight GPUs each (partition gpu) and
one without (partition cpu) are idle, or the reason and exit code 3 where this is no machine for it.
The GPUs are files. With accounting jobs need an account, and the one there is is `papers`.

All daemons are children of this process that die with it; what they started is ended when the
standard input closes, so also when the program at its other end is killed. Slurm's commands find
the cluster by /etc/slurm/slurm.conf, a link into the folder, as jobs of snakemake lose SLURM_CONF.
"""

import argparse
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from respo.training.verl.processes import adopt, die_with_parent, end_descendants

GPU_NODES = [f"gpu{number}" for number in range(1, 5)]
NODES = [*GPU_NODES, "cpu1"]
ACCOUNT = "papers"
ETC = Path("/etc/slurm")
LINKS = ("slurm.conf", "gres.conf")
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
NEEDED_FOR_ACCOUNTS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr")
START_SECONDS = 60
IMPOSSIBLE = 3

SLURM = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
# Nodes have what is written here, not what this machine has.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
KillWait=5
MinJobAge=300
{accounting}
NodeName=gpu[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[4]}] \
Sockets=2 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=2000000 Gres=gpu:h100:8
NodeName=cpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[5]} \
Sockets=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=100000
PartitionName=cpu Nodes=cpu1 Default=YES MaxTime=1-0
PartitionName=gpu Nodes=gpu[1-4] MaxTime=7-0
"""
ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[6]}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations
AccountingStoreFlags=job_comment
AccountingStorageTRES=gres/gpu,gres/gpu:h100
"""
DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports[6]}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""


class Impossible(Exception):
    """Why there can be no cluster on this machine."""


def main() -> None:
    """Start the cluster and keep it until the standard input closes or a signal comes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accounting", action="store_true")
    options = parser.parse_args()
    adopt()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        with only_cluster(), cluster(options.folder.absolute(), options.accounting):
            print("ready", flush=True)
            sys.stdin.read()
    except Impossible as reason:
        print(reason, flush=True)
        sys.exit(IMPOSSIBLE)
    finally:
        end_descendants(os.getpid())


@contextmanager
def only_cluster():
    """Wait until no other cluster of this kind is on the machine."""
    with Path("/tmp/respo-slurm-cluster.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def cluster(folder, accounting):
    """Start the daemons; end them and what they started."""
    check_possible(accounting)
    folder.mkdir(parents=True, exist_ok=True)
    write_configuration(folder, accounting)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        # Munge wants the folders above its socket writable by nobody else, or to be forced.
        key, pidfile = f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid"
        paths = [f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"]
        socket_ = f"--socket={folder}/munge.socket"
        start(folder, "munged", "--foreground", "--force", key, socket_, pidfile, *paths)
        if accounting:
            start_accounting(folder)
        start(folder, "slurmctld", "-D", "-c")
        wait_for(folder, "scontrol", "ping")
        for node in NODES:
            start(folder, "slurmd", "-D", "-N", node, name=node)
        wait_for(
            folder, "sh", "-c", f"test $(sinfo -hN -t idle -o %N | sort -u | wc -l) = {len(NODES)}"
        )
        for name in LINKS:
            (ETC / name).unlink(missing_ok=True)
            (ETC / name).symlink_to(folder / name)
        yield
    finally:
        with suppress(OSError, subprocess.SubprocessError, RuntimeError):
            # The nodes end the jobs' processes, which they alone know of.
            subprocess.run(["scancel", "--user=root"], timeout=10, capture_output=True)
            wait_for(folder, "sh", "-c", 'test -z "$(squeue -h)"', seconds=15)
        for name in LINKS:
            if (ETC / name).is_symlink():
                (ETC / name).unlink()
        end_descendants(os.getpid(), grace=5)


def check_possible(accounting):
    """Raise Impossible if this is not the machine for it."""
    if os.geteuid() != 0:
        raise Impossible("only root can start Slurm's daemons")
    missing = []
    for name in (*NEEDED, *(NEEDED_FOR_ACCOUNTS if accounting else ())):
        if subprocess.run(["which", name], capture_output=True).returncode:
            missing.append(name)
    if missing:
        raise Impossible(f"not installed: {', '.join(missing)}")
    conf = ETC / "slurm.conf"
    if conf.exists() and not conf.is_symlink():
        raise Impossible(f"{conf}: this machine belongs to a cluster of its own")


def write_configuration(folder, accounting):
    """Write Slurm's files, with ports that are free now."""
    values = {"folder": folder, "host": socket.gethostname().split(".")[0], "ports": free_ports()}
    values["accounting"] = ACCOUNTING.format(**values) if accounting else ""
    (folder / "slurm.conf").write_text(SLURM.format(**values))
    gpus = []
    for number in range(8):
        gpus.append(folder / f"gpu{number}")
        gpus[-1].unlink(missing_ok=True)
        gpus[-1].symlink_to("/dev/null")
    (folder / "gres.conf").write_text(
        f"NodeName=gpu[1-4] Name=gpu Type=h100 File={folder}/gpu[0-7]\n"
    )
    database = folder / "slurmdbd.conf"
    database.write_text(DATABASE.format(**values))
    database.chmod(0o600)
    key = folder / "munge.key"
    key.unlink(missing_ok=True)
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    for name in ("state", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir(exist_ok=True)


def free_ports(number=7):
    """Return successive ports that nobody listens on, below those that the kernel deals out."""
    for first in range(20000, 30000, 100):
        sockets = [socket.socket() for _ in range(number)]
        try:
            for offset, one in enumerate(sockets):
                one.bind(("127.0.0.1", first + offset))
            return range(first, first + number)
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise RuntimeError("no free ports")


def start_accounting(folder):
    """Start the database and its daemon, and make the account."""
    data = f"--datadir={folder}/mysql"
    if not (folder / "mysql").exists():
        making = ["mariadb-install-db", "--no-defaults", "--user=root", data, "--skip-test-db"]
        subprocess.run(
            [*making, "--auth-root-authentication-method=socket"], check=True, capture_output=True
        )
    os.environ["MYSQL_UNIX_PORT"] = f"{folder}/mysql.socket"
    paths = [data, f"--socket={folder}/mysql.socket", f"--pid-file={folder}/mariadb.pid"]
    memory = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
    start(folder, "mariadbd", "--no-defaults", "--user=root", "--skip-networking", *paths, *memory)
    wait_for(folder, "mariadb-admin", "--no-defaults", "-S", f"{folder}/mysql.socket", "ping")
    start(folder, "slurmdbd", "-D", SLURM_CONF=f"{folder}/slurmdbd.conf")
    wait_for(folder, "sacctmgr", "-n", "show", "cluster")
    for what in (
        ["cluster", "here"],
        ["account", ACCOUNT, "Cluster=here"],
        ["user", "root", f"Account={ACCOUNT}", "Cluster=here"],
    ):
        subprocess.run(["sacctmgr", "-i", "-Q", "add", *what], capture_output=True)


def start(folder, *command, name=None, **environment):
    """Start a daemon that dies with this process."""
    parent = os.getpid()

    def prepare():
        # Out of reach of a Ctrl-C that this process ends by in its own way.
        os.setsid()
        die_with_parent(parent, signal.SIGKILL)

    with (folder / f"{name or command[0]}.output").open("w") as output:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=prepare,
            env=os.environ | environment,
        )


def wait_for(folder, *command, seconds=START_SECONDS):
    """Wait until a command succeeds."""
    until = time.monotonic() + seconds
    while subprocess.run(command, capture_output=True, timeout=60).returncode:
        if time.monotonic() > until:
            outputs = {path.name: path.read_text()[-300:] for path in folder.glob("*.output")}
            raise RuntimeError(f"{' '.join(command)} does not succeed in {seconds} s: {outputs}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
