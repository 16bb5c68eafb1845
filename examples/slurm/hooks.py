#!/usr/bin/env python3
"""Hooks of `stint act` for Slurm: list, start and stop; submit and cancel for its conformance suite.

A job that is submitted with --hold is demand: of the consumer that its account is, as many units as it has nodes, all at
once. A grant sets the job's nodes and releases it. A reclaim requeues it, held. What was granted is in the job's
AdminComment, which only operators can write, so that Slurm itself is the memory of these hooks:

    stint:{"n1": "u0123456789abcdef", "n2": "u1123456789abcdef"}

Environment:
    STINT_ACCOUNTS    a JSON file of accounts and their consumers; without it account risk is consumer /risk
    STINT_DIMENSIONS  dimensions of the policy and the resources of Slurm that they are (cpus=cpu,gpus=gres/gpu)
    STINT_PARTITION   jobs of this partition only
"""

import json
import os
import re
import subprocess
import sys

MARK = "stint:"
# A job in one of these states occupies its nodes.
OCCUPIES = {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
OVER = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
        "REVOKED", "SPECIAL_EXIT"}
UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}


def slurm(*args):
    """The output of a command of Slurm. An error has what the command said."""
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(args)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def number(value):
    """A number of squeue --json: plain in older versions, an object in newer ones."""
    if isinstance(value, dict):
        return value.get("number", 0) if value.get("set") else 0
    return value or 0


class Job:
    def __init__(self, row):
        state = row["job_state"]
        self.states = set(state if isinstance(state, list) else [state])
        self.id = str(row["job_id"])
        self.account = row["account"]
        self.nodes = max(1, number(row["node_count"]))
        self.tres = row["tres_req_str"]
        self.held = number(row["priority"]) == 0
        self.units = {}
        comment = row.get("admin_comment") or ""
        if comment.startswith(MARK):
            self.units = json.loads(comment[len(MARK):])

    def over(self):
        return bool(self.states & OVER) and "COMPLETING" not in self.states

    def runs(self):
        """Whether the job has its nodes, or will have them without another word from stint."""
        return bool(self.units) and not self.over() and (bool(self.states & OCCUPIES) or not self.held)


def jobs():
    rows = json.loads(slurm("squeue", "--json"))["jobs"]
    partition = os.environ.get("STINT_PARTITION")
    return [Job(r) for r in rows if not partition or r["partition"] == partition]


def job(name):
    """One job, or None when Slurm does not know it any more.

    squeue --json of Slurm 22.05 heeds no --jobs, and scontrol has no JSON, but tells of one job in a tenth of the time.
    A job whose own words (name, folder) look like fields is looked for among all."""
    try:
        text = slurm("scontrol", "show", "job", "-o", name)
    except RuntimeError as error:
        if "Invalid job id" in str(error):
            return None
        raise
    is_ = {key: re.findall(rf"\b{key}=(\S*)", text) for key in ("JobState", "Priority", "NumNodes", "AdminComment")}
    least, _, most = (is_["NumNodes"] or ["?"])[0].partition("-")
    plain = all(len(values) == 1 or key == "AdminComment" and not values for key, values in is_.items())
    if plain and least.isdigit() and most in ("", least):
        j = Job({"job_id": name, "job_state": is_["JobState"][0], "priority": int(is_["Priority"][0]), "account": "",
                 "node_count": int(least), "tres_req_str": "", "admin_comment": "".join(is_["AdminComment"])})
        return None if j.over() else j
    return next((j for j in jobs() if j.id == name and not j.over()), None)


def size(j):
    """What one node of a job has to give, by dimension."""
    asked = dict(part.split("=", 1) for part in j.tres.split(",") if "=" in part)
    one = {}
    for pair in os.environ.get("STINT_DIMENSIONS", "cpus=cpu,gpus=gres/gpu").split(","):
        dimension, resource = pair.split("=")
        text = asked.get(resource, "0")
        amount = float(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else float(text)
        if amount > 0:
            one[dimension] = -int(-amount // j.nodes)
    return one


def consumers():
    name = os.environ.get("STINT_ACCOUNTS")
    if not name:
        return None
    with open(name) as file:
        return json.load(file)


def consumer(account, known):
    return known.get(account, "/" + account) if known else "/" + account


def state(words, busy):
    """A node's state in stint. One that takes no new work is closed while work runs there, and lost without: a job
    that was released for it would wait there for ever. One that is silent may be back in a moment, with its work."""
    if words & {"DOWN", "FAIL", "FUTURE", "POWERED_DOWN"}:
        return "unavail"
    if words & {"UNKNOWN", "NO_RESPOND", "NOT_RESPONDING"}:
        return "closed"
    if words & {"DRAIN", "FAILING", "MAINT", "RESERVED", "REBOOT"}:
        return "closed" if busy else "unavail"
    return "ok"


def hosts():
    rows = []
    for line in slurm("scontrol", "show", "node", "-o").splitlines():
        is_ = dict(re.findall(r"(\w+)=(\S*)", line))
        if "NodeName" not in is_:
            continue
        words = set(re.split(r"[+*~#$@^!%-]+", is_["State"]))
        if "*" in is_["State"]:
            words.add("NOT_RESPONDING")
        busy = is_.get("CPUAlloc", "0") != "0" or "COMPLETING" in words
        gpus = sum(int(n) for n in re.findall(r"gpu(?::[^:,()]+)?:(\d+)", is_.get("Gres", "")))
        offered = {"cpu": int(is_["CPUTot"]), "mem": int(is_["RealMemory"]), "gres/gpu": gpus}
        row = {"host": is_["NodeName"], "state": state(words, busy)}
        for pair in os.environ.get("STINT_DIMENSIONS", "cpus=cpu,gpus=gres/gpu").split(","):
            dimension, resource = pair.split("=")
            row[dimension] = offered.get(resource, 0)
        rows.append(row)
    return rows


def list_():
    known, demand, running = consumers(), [], []
    for j in jobs():
        if j.over() or not (j.held or j.units):
            continue
        whose = consumer(j.account, known)
        demand.append({"consumer": whose, "allocation": j.id, "units": j.nodes, "min_units": j.nodes, "max_per_host": 1,
                       **size(j)})
        if j.runs():
            for node, unit in j.units.items():
                running.append({"id": unit, "consumer": whose, "allocation": j.id, "host": node})
    return {"demand": demand, "running": running, "hosts": hosts()}


def start(units):
    """Starts one job on the nodes of its units, which the actor gives in one call."""
    name = units[0]["allocation"]
    j = job(name)
    granted = {u["host"]: u["id"] for u in units}
    if j is None:
        return f"there is no job {name}"
    if j.runs():
        return None if all(j.units.get(n) == i for n, i in granted.items()) else f"job {name} runs as {j.units}"
    if len(granted) != j.nodes:
        return f"job {name} needs {j.nodes} nodes at once and was granted {len(granted)}"
    mark = MARK + json.dumps(granted, sort_keys=True, separators=(",", ":"))
    slurm("scontrol", "update", f"JobId={name}", f"ReqNodeList={','.join(sorted(granted))}", "StartTime=now",
          f"AdminComment={mark}")
    slurm("scontrol", "release", name)
    return None


def stop(units):
    """Requeues a job, held. Slurm sends SIGTERM, and SIGKILL after its KillWait."""
    name = units[0]["allocation"]
    j = job(name)
    if j is None or not j.runs() or not any(j.units.get(u["host"]) == u["id"] for u in units):
        return None  # it does not run, or runs for other units
    if "PENDING" in j.states:
        slurm("scontrol", "hold", name)
    elif "COMPLETING" not in j.states:
        slurm("scontrol", "requeuehold", name)
    return None


def submit(work):
    account = work["consumer"].rsplit("/", 1)[-1]
    for name, path in (consumers() or {}).items():
        if path == work["consumer"]:
            account = name
    seconds = work["seconds"]
    minutes = str(int(seconds // 60) + 2)
    out = slurm("sbatch", "--parsable", "--hold", "--requeue", "-A", account, "-N", str(work["units"]), "--exclusive",
                "-t", minutes, "-o", "/dev/null", "--wrap", f"exec sleep {seconds}")
    work["allocation"] = out.strip().split(";")[0]
    return work


def answer(asked):
    action = asked["action"]
    if action == "list":
        return list_()
    if action == "submit":
        return submit(asked["work"])
    if action == "cancel":
        slurm("scancel", asked["work"]["allocation"])
        return {}
    units = asked["units"]
    try:
        why = start(units) if action == "start" else stop(units)
    except RuntimeError as error:  # Slurm's refusal; the actor tries again
        why = str(error)
    return {"failed": {u["id"]: why for u in units}} if why else {}


if __name__ == "__main__":
    try:
        for line in sys.stdin:  # one, or with `keep: true` one for each call
            asked = json.loads(line)
            print(json.dumps({**answer(asked), "call": asked.get("call")}), flush=True)
    except Exception as error:  # one line for the actor's log
        sys.exit(f"{type(error).__name__}: {error}")
