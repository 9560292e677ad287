"""XML-RPC over HTTP, with limits on time and size: calls, and the parts of a server that never waits.

Python marshals the values (`xmlrpc.client`). Its clients and servers have no limit for the whole of a call, so a peer
that sends one byte a second would hold them.

Sources: RFC 9112; the ROS wiki, "ROS/Master_API" and "ROS/Slave_API".
"""

from __future__ import annotations

import socket
import time
import xmlrpc.client
from typing import Any

MAX_REQUEST_BYTES = 1 << 17
"""Largest request that a server accepts. Requests of ROS have some hundred bytes."""

MAX_RESPONSE_BYTES = 1 << 24
"""Largest response that a client accepts. The state of a master with 10 000 topics has about 2 MB."""

END_OF_HEAD = b"\r\n\r\n"


def call(address: tuple[str, int], method: str, arguments: tuple[Any, ...], timeout: float) -> Any:
    """Return the result of a call.

    address: host and port of the server.
    timeout: longest time (s) of the whole call.

    Raises `OSError` if the server cannot be reached or is too slow, and `ValueError` if it does not answer in XML-RPC.
    """
    end = time.monotonic() + timeout
    body = xmlrpc.client.dumps(arguments, method).encode()
    head = f"POST /RPC2 HTTP/1.0\r\nHost: {address[0]}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}"
    received = bytearray()
    with socket.create_connection(address, timeout) as connection:
        connection.sendall(head.encode() + END_OF_HEAD + body)
        while (content := split_message(received)) is None:
            left = end - time.monotonic()
            if left <= 0.0:
                raise TimeoutError("no answer")
            connection.settimeout(left)
            data = connection.recv(1 << 16)
            if not data:
                raise ValueError("the answer ends too early")
            received += data
            if len(received) > MAX_RESPONSE_BYTES:
                raise ValueError(f"the answer has more than {MAX_RESPONSE_BYTES} bytes")
    start, content_body = content
    if not start.startswith("HTTP/1.") or start.split()[1:2] != ["200"]:
        raise ValueError(f"the answer is not HTTP with status 200: {start[:60]!r}")
    return parse_body(content_body)[0][0]


def split_message(received: bytes | bytearray) -> tuple[str, bytes] | None:
    """Return the first line and the body of an HTTP message, None if it is not complete.

    Raises `ValueError` without a valid length of the body.
    """
    head, separator, body = bytes(received).partition(END_OF_HEAD)
    if not separator:
        return None
    start, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < 10):
        raise ValueError("an HTTP message has no valid Content-Length")
    return (start, body[: int(length)]) if len(body) >= int(length) else None


def parse_body(body: bytes) -> tuple[tuple[Any, ...], str | None]:
    """Return the values of a body, and the method of a request. Raises `ValueError` if it is not valid."""
    try:
        values, method = xmlrpc.client.loads(body)
    except xmlrpc.client.Fault as error:
        raise ValueError(f"the answer is an error: {error.faultString[:200]}") from error
    except Exception as error:  # Python's parser checks little: KeyError, IndexError, TypeError, errors of expat
        raise ValueError("the body is not valid XML-RPC") from error
    return values, method


def format_response(result: Any) -> bytes:
    """Return the HTTP response with a result, or with a `xmlrpc.client.Fault`. The server closes the connection."""
    values = result if isinstance(result, xmlrpc.client.Fault) else (result,)
    body = xmlrpc.client.dumps(values, methodresponse=True).encode()
    head = f"HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\nContent-Length: {len(body)}"
    return head.encode() + END_OF_HEAD + body
