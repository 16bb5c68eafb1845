"""Tests of the client against a real service: STINT=bin/stint python3 -m unittest discover clients/python"""

import contextlib
import http.server
import io
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import loop
import stint

try:
    import pyarrow
except ImportError:
    pyarrow = None
    print("pyarrow is not installed: a stand-in holds the client's own part of the Arrow path alone", file=sys.stderr)

POLICY = """
stint: 1
interval: 1s
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Risk}, {path: /Research}]
md_plans: [{name: grid, resource_groups: [{name: All}], consumers: [{path: /Risk}, {path: /Research}]}]
"""


class Service(unittest.TestCase):
    """A service of its own for each test."""

    def setUp(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.dir = tempfile.TemporaryDirectory()
        self.base = f"http://127.0.0.1:{port}"
        command = [os.environ["STINT"], "serve", "--data", self.dir.name, "--listen", f"127.0.0.1:{port}"]
        self.serve = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        self.client = stint.Client(self.base)
        self.client.put_plan(POLICY, message="the first")  # tried again until the service is there
        self.client.put_hosts([{"host": "h1", "ncpus": 8}, {"host": "h2", "ncpus": 8}])

    def stop(self):
        self.serve.terminate()
        self.serve.wait()
        self.dir.cleanup()


class Served(Service):
    def test_input_and_reading(self):
        c = self.client
        row = {"consumer": "/Research", "allocation": "sweep", "units": 20, "ncpus": 1}
        taken = c.put_demand("feed", [row])
        self.assertEqual(taken["rows"], 1)
        self.assertGreaterEqual(c.cycle()["cycle"], taken["cycle"])
        held, cycle = c.holdings("feed")
        self.assertEqual(sum(r["units"] for r in held), 16)
        pages = list(c.pages("/v1/holdings", 1, source="feed"))
        self.assertEqual([len(p) for p in pages], [1] * len(held))
        self.assertEqual([r for p in pages for r in p], held)
        changes, since = c.changes("feed", 0)
        self.assertEqual({r["change"] for r in changes}, {"grant"})
        self.assertGreaterEqual(since, cycle)
        short, _ = c.table("shortfalls")
        self.assertEqual([(r["units_short"], r["reason"]) for r in short], [(4, "pool_exhausted")])
        self.assertEqual(c.explain("/Research", "sweep")["plans"][0]["short"], 4)
        self.assertEqual(c.whatif(POLICY, settle=0)["same"], 2)
        asked = c.simulate([{"consumer": "/Risk", "allocation": "new", "units": 4, "ncpus": 1}], horizon="1h")
        self.assertEqual(asked["rows"][0]["units_most"], 4)
        c.change_hosts([{"host": "h3", "ncpus": 4}])
        c.change_demand("feed", "consumer,allocation,units,ncpus\n/Risk,late,1,1\n", "text/csv")
        back = c.release([{"consumer": "/Research", "allocation": "sweep", "host": "h1", "units": 2, "done": True}])
        self.assertEqual(back["released"], 2)
        c.put_running("feed", [{**{k: r[k] for k in ("consumer", "allocation", "host")}, "units": 1} for r in c.holdings("feed")[0][:1]], allow_shrink=True)
        self.assertGreater(c.delete_demand("feed", allow_shrink=True)["released"], 0)

    def test_problem(self):
        with self.assertRaises(stint.Problem) as raised:
            self.client.put_demand("feed", [{"consumer": "/Nobody", "allocation": "a", "units": 1, "ncpus": 1}])
        self.assertEqual((raised.exception.status, raised.exception.kind, raised.exception.count), (422, "bad-rows", 1))
        self.assertEqual(raised.exception.rows[0]["value"], "/Nobody")
        with self.assertRaises(stint.Problem) as raised:
            self.client.put_plan(POLICY, if_revision=7)
        self.assertEqual(raised.exception.kind, "revision")

    def test_events(self):
        self.client.cycle()
        events = self.client.events()
        first = next(events)
        self.assertEqual(next(events)["cycle"], first["cycle"] + 1)

    def test_loop(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            loop.main(self.base, "/Research", 40, work=0)
        self.assertIn("40 of 40 done", out.getvalue())

    def test_arrow(self):
        if pyarrow is None:
            self.skipTest("pyarrow is not installed: StoodIn holds the client's part of it")
        table = pyarrow.table({"consumer": ["/Research"], "allocation": ["a"], "units": [3], "ncpus": [1]})
        self.client.put_demand("feed", table)
        self.client.cycle()
        self.assertEqual(sum(self.client.arrow("/v1/holdings", source="feed")["units"].to_pylist()), 3)


class StandIn:
    """pyarrow as the client uses it, with a format of its own in place of Arrow's."""

    class BufferOutputStream:
        def __init__(self):
            self.bytes = b""

        def getvalue(self):
            return types.SimpleNamespace(to_pybytes=lambda: self.bytes)

    class ipc:
        class new_stream:
            def __init__(self, sink, schema):
                self.sink, self.schema, self.tables = sink, schema, []

            def __enter__(self):
                return self

            def write_table(self, table):
                self.tables.append(table.rows)

            def __exit__(self, *_):  # as Arrow's stream, it is whole once it is closed
                self.sink.bytes = b"stand-in" + pickle.dumps((self.schema, self.tables))

        class open_stream:
            def __init__(self, body):
                self.body = body

            def read_all(self):
                return self.body


class StoodIn(Service):
    """The client's own part of the Arrow path: media types, bodies that are passed on whole, streams that are closed."""

    def setUp(self):
        if pyarrow is not None:
            self.skipTest("pyarrow is installed: test_arrow has the real thing")
        super().setUp()
        patch = mock.patch.dict(sys.modules, {"pyarrow": StandIn})
        patch.start()
        self.addCleanup(patch.stop)

    def test_reading(self):
        self.client.put_demand("feed", [{"consumer": "/Research", "allocation": "a", "units": 3, "ncpus": 1}])
        self.client.cycle()
        body = self.client.arrow("/v1/holdings", source="feed")
        self.assertEqual(body[:4], b"\xff\xff\xff\xff")  # how a message of Arrow's stream begins
        self.assertEqual(body[-8:], b"\xff\xff\xff\xff\0\0\0\0")  # how it ends
        self.assertIn(b"/Research", body)

    def test_writing(self):
        table = types.SimpleNamespace(schema=["consumer"], rows=[["/Research"]], to_batches=lambda: [])
        body, media = stint._body(table, None)
        self.assertEqual(media, "application/vnd.apache.arrow.stream")
        self.assertEqual(pickle.loads(body.removeprefix(b"stand-in")), (["consumer"], [[["/Research"]]]))
        with self.assertRaises(stint.Problem) as raised:  # the service takes it for Arrow, which it is not
            self.client.put_demand("feed", table)
        self.assertEqual(raised.exception.status, 422)


class Retried(unittest.TestCase):
    """A service that is busy, breaks off, and then takes the input: always under one key."""

    def test_retries(self):
        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                seen.append((self.headers["Idempotency-Key"], self.headers["Authorization"]))
                if len(seen) == 1:
                    self.send_response(429)
                    self.send_header("Retry-After", "0")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                elif len(seen) == 2:
                    self.connection.close()
                else:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(b'{"snapshot":"7","rows":1,"cycle":3}')

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            c = stint.Client(f"http://127.0.0.1:{server.server_port}", token="secret", wait_max=0.01)
            self.assertEqual(c.put_demand("feed", [])["snapshot"], "7")
            server.shutdown()
        self.assertEqual(len(seen), 3)
        self.assertEqual(len(set(seen)), 1)
        self.assertEqual(seen[0][1], "Bearer secret")


if __name__ == "__main__":
    unittest.main()
