"""Device ports log their URL and the bytes sent, and reject invalid URLs before the run starts."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import navsense as ns
from navsense import cli, recordings
from navsense.cli.application import print_library_messages
from navsense.core.errors import RecordingError
from navsense.core.text import format_size
from navsense.recordings.mcap.writer import McapWriter
from navsense.runner.outputs import check_output, open_output
from navsense.sensors import Dvl
from navsense.streams.device_port import DevicePublisher
from navsense.testing import example_world

WORLD = """\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
    <model name="bed">
      <static>true</static> <pose>0 0 -30 0 0 0</pose>
      <link name="ground"><collision name="c"><geometry><plane/></geometry></collision></link>
    </model>
    <model name="auv">
      <link name="base">
        <sensor name="dvl" type="dvl"><update_rate>5</update_rate><dvl><max>90</max></dvl></sensor>
      </link>
    </model>
  </world>
</sdf>
"""

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.timeout(400),  # the kernel may have to be compiled
    pytest.mark.requirement("REC-1:devices"),
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Return the file of a world with one Doppler log."""
    (tmp_path / "sea.sdf").write_text(WORLD, encoding="utf-8")
    return tmp_path / "sea.sdf"


def run_command(monkeypatch: pytest.MonkeyPatch, world: Path, *outputs: str) -> int:
    """Run the command line with these outputs; return its exit code."""
    output = [part for output in outputs for part in ("-o", output)]
    monkeypatch.setattr(sys, "argv", ["navsense", "run", str(world), "--duration", "2", *output])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_log_names_the_assigned_port(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines are unformatted and in order. Only the file is listed as written."""
    file = world.with_name("a.nmea")
    assert run_command(monkeypatch, world, "nmea+tcp://127.0.0.1:0?wait=0.05", str(file)) == 0
    out, err = capsys.readouterr()
    found = re.search(r"^(nmea\+tcp://127\.0\.0\.1:(\d+)\?wait=0\.05): serves all clients$", err, re.MULTILINE)
    assert found is not None
    assert int(found[2]) > 0
    lines = [line for line in err.splitlines() if found[1] in line]
    assert lines[1:] == [
        f"warning: {found[1]}: no client connected within 0.05 s; the run continues",
        f"{found[1]}: no client connected",
    ]
    assert "RuntimeWarning" not in err
    assert [line for line in out.splitlines() if line.startswith("wrote ")] == [
        f"wrote {file}: 2 s simulated, {format_size(file.stat().st_size)}"
    ]


def test_log_reports_the_bytes_sent(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client connects to the port in the log."""
    received: list[bytes] = []
    served = threading.Event()
    ports: list[int] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found = re.match(r"pd0\+tcp://localhost:(\d+): serves all", record.getMessage())
            if found:
                ports.append(int(found[1]))
                served.set()

    def read() -> None:
        served.wait(300.0)
        with socket.create_connection(("localhost", ports[0]), timeout=60.0) as one:
            while part := one.recv(1 << 16):
                received.append(part)

    listener, logger = Listener(), logging.getLogger("navsense")
    thread = threading.Thread(target=read)
    thread.start()
    logger.addHandler(listener)
    try:
        assert run_command(monkeypatch, world, "pd0+tcp://localhost:0", str(world.with_name("a.pd0"))) == 0
    finally:
        logger.removeHandler(listener)
    thread.join(20.0)
    file = world.with_name("a.pd0").read_bytes()
    assert len(file) > 100
    assert b"".join(received) == file
    err = capsys.readouterr().err
    assert f"pd0+tcp://localhost:{ports[0]}: sent {len(file)} bytes to 1 client\n" in err
    assert "warning" not in err


@pytest.mark.parametrize("port", ["0", "00"])
@pytest.mark.parametrize("host", ["127.0.0.1", "", "[::1]", "[::0]"])
def test_url_of_the_publisher_has_the_host_and_the_assigned_port(host: str, port: str) -> None:
    """Digits of the host that equal the port do not change."""
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    info = recordings.RecordedRun(example_world(("dvl", Dvl.example_spec())), duration=1.0)
    with open_output(f"nmea+tcp://{host}:{port}?wait=0", info) as publisher:
        assert isinstance(publisher, DevicePublisher)
        assigned = publisher._server.port
        assert publisher.url == f"nmea+tcp://{host or '127.0.0.1'}:{assigned}?wait=0"


def has_ipv6() -> bool:
    """True if a server can listen on the loopback address of IPv6."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_log_counts_clients_and_a_second_close_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="navsense")
    head = recordings.RecordedRun(example_world(("dvl", Dvl.example_spec())), 1000, duration=1.0)
    writer = open_output("nmea+tcp://127.0.0.1:0?wait=0", head)
    assert isinstance(writer, DevicePublisher)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", writer._server.port)))
        until = time.monotonic() + 20.0
        while len(writer._server._clients) < 2 and time.monotonic() < until:
            time.sleep(0.005)
        writer._server.send(b"12345")
        writer.close()
        writer.close()
    name = f"nmea+tcp://127.0.0.1:{writer._server.port}?wait=0"
    assert caplog.messages == [f"{name}: serves all clients", f"{name}: sent 10 bytes to 2 clients"]


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("nmea+tcp://127.0.0.1:99999", r"nmea\+tcp://127\.0\.0\.1:99999: port: 99999; must be a number from 0 to"),
        (
            "pd9+tcp://127.0.0.1:0",
            r"pd9\+tcp://127\.0\.0\.1:0: scheme of the URL: pd9\+tcp; must be one of pd0\+tcp, pd6\+tcp, wl\+tcp",
        ),
        (
            "nmea+udp://127.0.0.1:0",
            r"nmea\+udp://127\.0\.0\.1:0: scheme of the URL: nmea\+udp; must be one of pd0\+tcp",
        ),
        ("tcp://127.0.0.1:1033", r"tcp://127\.0\.0\.1:1033: scheme of the URL: tcp; must be one of pd0\+tcp"),
        ("nmea+tcp:10110", r"nmea\+tcp:10110: URL without //; must be SCHEME://HOST:PORT"),
    ],
)
def test_error_shows_an_invalid_url_unchanged(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str, why: str
) -> None:
    with pytest.raises(RecordingError, match=why):
        check_output(output)
    assert run_command(monkeypatch, world, output) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"error: {why}.*\n", err)


def test_port_in_use_is_a_one_line_error(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        output = f"nmea+tcp://127.0.0.1:{taken.getsockname()[1]}"
        assert run_command(monkeypatch, world, output) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {output}: port is in use: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("a" * 64, "host: a+; must be a name or an address of this machine"),
        ("a..b", r"host: a\.\.b; must be a name"),
        ("127.0.0.1:" + "9" * 5000, r"port: 9+\.\.\.; must be a number from 0 to 65535"),
    ],
)
def test_invalid_hosts_and_ports_are_rejected(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], host: str, why: str
) -> None:
    """A label of a host name has at most 63 characters, and an integer that Python reads 4300 digits."""
    output = f"pd0+tcp://{host}" + ":5000" * (":" not in host)
    assert run_command(monkeypatch, world, output) == 2
    assert re.search(f"^error: {re.escape(output)}: {why}", capsys.readouterr().err)


def test_folder_name_with_a_colon_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "dive:2").mkdir()
    path = tmp_path / "dive:2" / "run.mcap"
    assert recordings.find_output_format(path).open_writer is McapWriter
    with pytest.raises(RecordingError, match="no recording has this suffix"):
        check_output(path.with_suffix(".xyz"))


def test_python_warnings_are_not_printed_as_log_lines(world: Path) -> None:
    with pytest.warns(
        RuntimeWarning, match=r"pd0\+tcp://127\.0\.0\.1:\d+\?wait=0\.01: no client connected within 0\.01 s"
    ):
        ns.record(ns.load(world), "pd0+tcp://127.0.0.1:0?wait=0.01", 0.5)
    before = warnings.showwarning, logging.getLogger("navsense").handlers[:]
    with print_library_messages():
        assert warnings.showwarning is not before[0]
    assert (warnings.showwarning, logging.getLogger("navsense").handlers) == before


def test_all_outputs_are_checked_before_the_first_port_listens(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    second = "nmea+tcp://127.0.0.1:0?sensor=nobody"
    assert run_command(monkeypatch, world, "pd0+tcp://127.0.0.1:0?wait=1000", second) == 2
    err = capsys.readouterr().err
    assert "serves all clients" not in err
    assert "sensor: nobody; must be one of auv::base::dvl" in err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("dive.dvl.beem.pd0", "coordinate frame: beem; must be one of beam, instrument, ship, earth"),
        ("dive.dvl.beam.wl.json", "coordinate frame: beam; Water Linked JSON has one frame"),
    ],
)
def test_last_part_of_a_file_name_is_the_coordinate_frame(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, problem: str
) -> None:
    assert run_command(monkeypatch, world, str(world.with_name(name))) == 2
    assert problem in capsys.readouterr().err
    assert not world.with_name(name).exists()
