"""One connection to a daemon: sockets, sessions, requests and their answers, bodies in parts."""
import os
import struct
import time
import weakref

import zmq
from zmq.utils.monitor import recv_monitor_message

from . import _wire as wire

_DOWNLOAD_PARTS = 8  # of an answer under way
_CONNECT_S, _SLICE_MS = 3.0, 50



class Endpoint:
    """A connection to one of the daemon's sockets: HELLO, messages out and in, and whether it broke; stream: that it is of."""

    def __init__(self, client, name, stream=None):
        self.client, self.name = client, name
        self.stream = None if stream is None else weakref.proxy(stream)  # one that nobody holds any more ends by itself
        self.socket = self.monitor = None
        self.session = b""

    def close(self):
        if self.socket is not None:
            if self.session and self.socket.poll(0, zmq.POLLOUT):
                bye = wire.Header(req_id=self.client._req_id())
                bye.bye.SetInParent()
                self.send(bye)  # a courtesy; the daemon notices anyway
            self.socket.disable_monitor()
            self.monitor.close(0)
            self.socket.close(200)
        self.socket = self.monitor = None
        self.session = b""

    def open(self):
        """Connects and says HELLO, unless that was done."""
        if self.socket is not None:
            self.check()
        if self.session:
            return
        self.close()
        if self.client.context.closed:
            raise wire.Lost("this client was closed: make another one")
        path = os.path.join(self.client.ipc_dir, self.name + ".sock")
        if not os.path.exists(path):
            raise wire.Lost(f"no daemon answers in {self.client.ipc_dir} (there is no socket)")
        self.socket = self.client.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.HANDSHAKE_IVL, 3000)
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CONNECT_RETRIED)
        self.socket.connect("ipc://" + path)
        header = wire.Header()
        header.hello.min_major = header.hello.max_major = wire.MAJOR
        header.hello.minor = wire.MINOR
        header.hello.client = b"voxeld.py"
        try:
            answer, _ = self.client._exchange(self, header, None, "welcome", _CONNECT_S)
        except (wire.Lost, wire.Timeout):
            self.close()
            raise wire.Lost(f"no daemon answers in {self.client.ipc_dir} (nothing says WELCOME)") from None
        self.session = answer.welcome.session
        self.client.server = answer.welcome.server.decode("utf-8", "replace")
        self.client.limits = answer.welcome.limits

    def check(self):
        """Notices that the connection broke."""
        while self.monitor is not None and self.monitor.poll(0):
            recv_monitor_message(self.monitor)
            self.close()
            if self.stream is not None:
                self.stream._lose()

    def send(self, header, payloads=()):
        header.session = self.session
        del header.payloads[:]
        for payload in payloads:
            header.payloads.add(n_bytes=len(payload), crc32c=wire.crc32c(payload))
        packed = header.SerializeToString()
        body = header.WhichOneof("body")
        prelude = b"VXP1" + struct.pack("<BBHIBBH", wire.MAJOR, wire.MINOR, wire.TYPES[body], len(packed), len(payloads), 0, 0)
        if not self.socket.poll(int(1000 * self.client.timeout_s), zmq.POLLOUT):
            raise wire.Timeout("the daemon takes no message")
        self.socket.send_multipart([prelude, packed, *payloads])

    def receive(self):
        """The next message as (header, payload), or None."""
        if self.socket is None or not self.socket.poll(0):
            return None
        parts = self.socket.recv_multipart()
        if len(parts) < 2 or parts[0][:4] != b"VXP1":
            raise wire.Error("INTERNAL", "the daemon sent what is no message")
        header = wire.Header()
        header.ParseFromString(parts[1])
        payload = parts[2] if len(parts) > 2 else b""
        if header.payloads and (header.payloads[0].n_bytes != len(payload) or header.payloads[0].crc32c != wire.crc32c(payload)):
            raise wire.Error("DATA_LOSS", "a payload of the daemon arrived damaged")
        return header, payload


class Connection:
    """What the client's calls stand on: requests, and the streams' answers."""

    def __init__(self, ipc_dir=None, timeout_s=600.0):
        self.ipc_dir = os.fspath(ipc_dir or os.environ.get("VOXELD_IPC_DIR") or "/run/voxeld")
        self.timeout_s = timeout_s
        self.server, self.limits = "", None
        self.context = zmq.Context()
        self._endpoints = {name: Endpoint(self, name) for name in ("query", "admin")}  # and of each stream, by its number
        self._next_req = 1
        try:
            self._endpoints["query"].open()
        except Exception:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection.  Frames that were sent are still integrated."""
        for endpoint in self._endpoints.values():
            endpoint.close()
        self.context.destroy(200)

    # ------------------------------------------------------------------------------------------------ requests

    def _req_id(self):
        self._next_req += 1
        return self._next_req - 1

    def _wait(self, ms):
        poller = zmq.Poller()
        for endpoint in list(self._endpoints.values()):
            if endpoint.socket is not None:
                poller.register(endpoint.socket, zmq.POLLIN)
                poller.register(endpoint.monitor, zmq.POLLIN)
        poller.poll(ms)

    def _dispatch(self, wanted=None, req_id=0):
        """Takes in what arrived on all sockets; what endpoint `wanted` got for req_id is returned as a list."""
        found = []
        for endpoint in list(self._endpoints.values()):
            while True:
                message = endpoint.receive()
                if message is None:
                    break
                header, payload = message
                body = header.WhichOneof("body")
                if endpoint is wanted and header.req_id == req_id:
                    found.append((header, payload))
                elif body == "ping":
                    pong = wire.Header(req_id=header.req_id)
                    pong.pong.data = header.ping.data
                    endpoint.send(pong)
                elif endpoint.stream is not None and body in ("ack", "nack", "credit", "error"):
                    endpoint.stream._take(body, header)
        return found

    def _exchange(self, endpoint, header, body, expected, timeout_s, take=None):
        """One request with its body (bytes or None), and its answer with its body, each in parts where it is large.

        take: a function that is given the pieces of the answer's body as they come; without it they are returned as a
        bytearray.  Whatever ends the wait for the answer cancels the request.
        """
        header.req_id = self._req_id()
        try:
            return self._travel(endpoint, header, memoryview(body or b"").cast("B"), expected, timeout_s, take)
        except BaseException as error:
            if endpoint.session and (isinstance(error, wire.Timeout) or not isinstance(error, wire.Error)):
                cancel = wire.Header(req_id=self._req_id())
                cancel.cancel.req_id = header.req_id
                endpoint.send(cancel)
            raise

    def _travel(self, endpoint, header, up, expected, timeout_s, take):
        req_id, most = header.req_id, self.limits.part_bytes if self.limits else 1 << 20
        in_parts = len(up) > most
        header.body_bytes = len(up) if in_parts else 0
        endpoint.send(header, [up] if up and not in_parts else [])
        sent = len(up) if not in_parts else 0
        index = credit = 0
        answer, down, n_down, n_got = None, bytearray(), 0, 0
        take = take or down.extend
        since = time.monotonic()
        while True:
            messages = self._dispatch(endpoint, req_id)
            for got, payload in messages:
                kind = got.WhichOneof("body")
                if kind == "error":
                    raise wire.error_of(got.error)
                if kind == "credit":
                    credit += got.credit.parts
                elif kind in ("part", expected) and (answer is None) == (kind == expected):
                    if answer is None:
                        answer, n_down = got, got.body_bytes
                        if n_down:
                            self._grant(endpoint, req_id, _DOWNLOAD_PARTS)
                    elif got.part.index % (_DOWNLOAD_PARTS // 2) == _DOWNLOAD_PARTS // 2 - 1:
                        self._grant(endpoint, req_id, _DOWNLOAD_PARTS // 2)
                    if payload:
                        take(payload)
                        n_got += len(payload)
                elif kind != "progress":
                    raise wire.Error("INTERNAL", f"the daemon answered with {kind}")
            if answer is not None and n_got >= n_down:
                return answer, down
            endpoint.check()
            if endpoint.socket is None:
                raise wire.Lost("the daemon went away before it answered")
            while credit > 0 and sent < len(up):
                piece = up[sent:sent + most]
                part = wire.Header(req_id=req_id)
                part.part.index, part.part.last = index, sent + len(piece) == len(up)
                endpoint.send(part, [piece])
                sent, index, credit = sent + len(piece), index + 1, credit - 1
                since = time.monotonic()
            if messages:
                since = time.monotonic()
            elif time.monotonic() - since > timeout_s:
                raise wire.Timeout(f"the daemon did not answer within {timeout_s:g} s")
            self._wait(_SLICE_MS)

    @staticmethod
    def _grant(endpoint, req_id, parts):
        credit = wire.Header(req_id=req_id)
        credit.credit.parts = parts
        endpoint.send(credit)

    def _call(self, place, header, expected, body=None, take=None):
        """A request on a socket; one that a restarted daemon does not know is greeted again."""
        endpoint = self._endpoints[place]
        for attempt in range(2):
            endpoint.open()
            try:
                return self._exchange(endpoint, header, body, expected, self.timeout_s, take)
            except wire.Error as error:
                if error.code != "UNAUTHENTICATED" or attempt:
                    raise
                endpoint.session = b""
                if endpoint.stream is not None:
                    endpoint.stream._lose()
        return None

    def _add_stream(self, stream):
        """A stream has a connection, hence a session, of its own: closing it gives all of it back to the daemon."""
        endpoint = self._endpoints[stream.id] = Endpoint(self, "ingest", stream)
        return endpoint

    def _drop_stream(self, stream):
        endpoint = self._endpoints.pop(stream.id, None)
        if endpoint is not None:
            endpoint.close()
