"""Speaks to a stint service: pushes demand, reads changes, gives units back, asks why and what if.

It needs the standard library alone. Where pyarrow is installed, tables come and go as Arrow (``Client.arrow``,
and demand or hosts given as ``pyarrow.Table``).

    stint = Client("http://127.0.0.1:7468")
    stint.put_demand("feed", [{"consumer": "/Research", "allocation": "sweep", "units": 20, "ncpus": 1}])
    for change in stint.follow("feed"):
        ...

Calls that the service is too busy for, and those that broke off, are made again; input carries an idempotency key, so
that what was made twice counts once.
"""

import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

__all__ = ["Client", "Problem"]

_ARROW = "application/vnd.apache.arrow.stream"


class Problem(Exception):
    """A refusal by the service. ``kind`` is stable, such as ``bad-rows`` or ``compacted``."""

    def __init__(self, status, body):
        self.status = status
        self.kind = str(body.get("type", "")).removeprefix("urn:stint:error:")
        self.detail = body.get("detail", "")
        self.rows = body.get("rows", [])      # bad rows: row, column, value, reason
        self.faults = body.get("faults", [])  # of a policy file: line, column, path, value, reason
        self.count = body.get("count", 0)     # of all of them
        super().__init__(f"{self.detail} ({status} {self.kind})")


class Client:
    """A service and who speaks to it. It may be used by several threads."""

    def __init__(self, base="http://127.0.0.1:7468", token=None, tries_max=10, wait_max=30.0, timeout=120.0, context=None):
        self.base = base.rstrip("/")
        self.token = token
        self.tries_max = tries_max  # of one call
        self.wait_max = wait_max    # seconds between two of them
        self.timeout = timeout      # seconds without a byte
        self.context = context      # ssl.SSLContext, for https

    # Input. Rows are a list of dicts, text or bytes with their media type, or a pyarrow.Table.

    def put_plan(self, text, message=None, if_revision=None, force=False):
        """Puts a policy file in force from the next cycle on."""
        headers = {"If-Match": f'"{if_revision}"'} if if_revision else {}
        query = {"message": message, "force": "true" if force else None}
        return self._input("PUT", "/v1/plan", text, "application/yaml", query, headers)

    def put_hosts(self, rows, media=None, allow_shrink=False):
        """Gives the full table of hosts."""
        return self._input("PUT", "/v1/hosts", rows, media, _shrink(allow_shrink))

    def change_hosts(self, rows, media=None):
        """Gives changes by host."""
        return self._input("PATCH", "/v1/hosts", rows, media)

    def put_demand(self, source, rows, media=None, allow_shrink=False):
        """Gives all that a source wants; what is left out is released."""
        return self._input("PUT", "/v1/demand/" + _quote(source), rows, media, _shrink(allow_shrink))

    def change_demand(self, source, rows, media=None):
        """Gives changes to what a source wants; units 0 takes a row away."""
        return self._input("PATCH", "/v1/demand/" + _quote(source), rows, media)

    def delete_demand(self, source, allow_shrink=False):
        """Has a source be forgotten, with all that it wants; what it holds is released."""
        return self._input("DELETE", "/v1/demand/" + _quote(source), b"", "text/csv", _shrink(allow_shrink))

    def put_running(self, source, rows, media=None, allow_shrink=False):
        """Gives all that runs of a source, whatever the service thought."""
        return self._input("PUT", "/v1/running/" + _quote(source), rows, media, _shrink(allow_shrink))

    def release(self, rows, media=None):
        """Gives units back; rows with ``done`` lower what is wanted, too."""
        return self._input("POST", "/v1/releases", rows, media)

    def cycle(self):
        """Runs a cycle now, and waits for it."""
        return json.loads(self._call("POST", "/v1/cycles")[0])

    # Reading.

    def changes(self, source, since, wait=None):
        """What happened to a source after a cycle, and the cycle to ask for next.

        A Problem of kind ``compacted`` means that changes so old are not kept: read ``holdings`` and go on from its cycle.
        """
        return self._rows("/v1/changes", {"source": source, "since": since, "wait": f"{wait:g}s" if wait else None})

    def holdings(self, source=None):
        """What is held, and the cycle at which that is true."""
        return self._rows("/v1/holdings", {"source": source})

    def follow(self, source, since=None, wait=30):
        """Gives change by change, for ever. Without ``since`` it begins with the changes after the last cycle."""
        if since is None:
            since = self.position(source)
        while True:
            rows, since = self.changes(source, since, wait)
            yield from rows

    def position(self, source):
        """The cycle after which a client that begins now reads changes."""
        try:
            return self.holdings(source)[1]
        except Problem as p:
            if p.kind != "no-cycle":
                raise
            return 0

    def table(self, name, cycle="latest", consumer=None):
        """The rows of a decision table, such as ``shortfalls``, and their cycle."""
        return self._rows(f"/v1/cycles/{cycle}/{_quote(name)}", {"consumer": consumer})

    def pages(self, path, limit=1000, **query):
        """The rows of a list, read by pages of one cycle: ``for rows in pages("/v1/holdings", source="feed")``.

        A Problem of kind ``cursor`` means that the next cycle has come meanwhile: begin again.
        """
        query["limit"] = limit
        while True:
            body, headers = self._call("GET", path, query)
            yield json.loads(body)
            query["cursor"] = headers.get("Stint-Next")
            if query["cursor"] is None:
                return

    def arrow(self, path, **query):
        """The answer of a call that reads a table, as a pyarrow.Table: ``arrow("/v1/holdings", source="feed")``."""
        import pyarrow

        body, _ = self._call("GET", path, query, accept=_ARROW)
        return pyarrow.ipc.open_stream(body).read_all()

    def explain(self, consumer, allocation=None, cycle=None):
        """Why a consumer, or an allocation of it, has what it has."""
        query = {"allocation": allocation, "cycle": cycle}
        return self._value("GET", "/v1/explain/" + _quote(consumer.strip("/")), query)

    def whatif(self, plan, settle=None, force=False):
        """What the next cycle would be under another policy file."""
        query = {"settle": settle, "force": "true" if force else None}
        return self._value("POST", "/v1/whatif", query, plan, "application/yaml")

    def simulate(self, demand, hosts=None, runtimes=None, **query):
        """What demand that is not there would get, and when: ``runtimes=[{"consumer": "/Risk", "p50": "10m"}]``."""
        body = {"demand": demand, "hosts": hosts or [], "runtimes": runtimes or []}
        return self._value("POST", "/v1/simulate", query, json.dumps(body), "application/json")

    def events(self, since=None):
        """Gives cycles as they are published, for ever."""
        while True:
            request = self._request("GET", "/v1/events", {"since": since}, None, {"Accept": "text/event-stream"})
            try:
                with urllib.request.urlopen(request, timeout=self.timeout, context=self.context) as answer:
                    kind = None
                    for line in answer:
                        field, _, value = line.decode().rstrip("\n").partition(": ")
                        if field == "event":
                            kind = value
                        elif field == "data" and kind == "cycle":
                            event = json.loads(value)
                            since = event["cycle"]
                            yield event
                        elif field == "data" and kind == "unauthorized":
                            raise Problem(401, {"detail": "the token is not known any more"})
            except urllib.error.HTTPError as e:
                raise _problem(e) from None
            except OSError:
                pass  # the stream is begun anew behind the cycle seen last
            time.sleep(0.2)

    # How calls are made.

    def _input(self, method, path, rows, media, query=None, headers=None):
        body, media = _body(rows, media)
        headers = {"Idempotency-Key": uuid.uuid4().hex, **(headers or {})}
        return json.loads(self._call(method, path, query, body, media, headers=headers)[0])

    def _value(self, method, path, query=None, body=None, media=None):
        body = body.encode() if isinstance(body, str) else body
        return json.loads(self._call(method, path, query, body, media)[0])

    def _rows(self, path, query):
        body, headers = self._call("GET", path, query)
        return json.loads(body), int(headers["Stint-Cycle"])

    def _request(self, method, path, query, body, headers):
        query = {k: v for k, v in (query or {}).items() if v is not None}
        at = self.base + path + ("?" + urllib.parse.urlencode(query) if query else "")
        request = urllib.request.Request(at, data=body, method=method, headers=headers)
        if self.token:
            request.add_unredirected_header("Authorization", "Bearer " + self.token)
        return request

    def _call(self, method, path, query=None, body=None, media=None, accept="application/json", headers=None):
        headers = {"Accept": accept, **({"Content-Type": media} if media else {}), **(headers or {})}
        wait = 0.1
        for attempt in range(1, self.tries_max + 1):
            asked = 0.0
            try:
                request = self._request(method, path, query, body, headers)
                with urllib.request.urlopen(request, timeout=self.timeout, context=self.context) as answer:
                    return answer.read(), answer.headers
            except urllib.error.HTTPError as e:
                problem = _problem(e)
                if e.code not in (429, 503) or attempt == self.tries_max:
                    raise problem from None
                asked = float(e.headers.get("Retry-After") or 0)
            except (OSError, urllib.error.URLError):  # it broke off, or nobody is there yet
                if attempt == self.tries_max:
                    raise
            time.sleep(min(self.wait_max, max(asked, wait / 2 + random.random() * wait / 2)))
            wait = min(self.wait_max, 2 * wait)


def _quote(text):
    return urllib.parse.quote(text, safe="")


def _shrink(allow):
    return {"allow_shrink": "true" if allow else None}


def _problem(error):
    text = error.read()
    try:
        body = json.loads(text)
    except ValueError:
        body = {"detail": text[:200].decode(errors="replace")}
    return Problem(error.code, body)


def _body(rows, media):
    if isinstance(rows, str):
        return rows.encode(), media or "application/octet-stream"
    if isinstance(rows, (bytes, bytearray)):
        return bytes(rows), media or "application/octet-stream"
    if hasattr(rows, "schema") and hasattr(rows, "to_batches"):  # a pyarrow.Table
        import pyarrow

        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        return sink.getvalue().to_pybytes(), _ARROW
    return json.dumps(list(rows)).encode(), "application/json"
