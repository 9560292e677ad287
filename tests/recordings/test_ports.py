"""What is said of ports: where one is served, what was sent to how many, and what is wrong with an address."""

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
from navsense.recordings.device_writers import DevicePortWriter, format_url
from navsense.recordings.mcap.writer import McapWriter
from navsense.sensors import Dvl
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


def run(monkeypatch: pytest.MonkeyPatch, world: Path, *outputs: str) -> int:
    """Run the command line with these outputs; return its exit code."""
    given = [part for output in outputs for part in ("-o", output)]
    monkeypatch.setattr(sys, "argv", ["navsense", "run", str(world), "--duration", "2", *given])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_the_port_that_was_free_is_told_where_nobody_comes(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As plain lines, in their order; a file beside it is written, the port is not."""
    file = world.with_name("a.nmea")
    assert run(monkeypatch, world, "nmea+tcp://127.0.0.1:0?wait=0.05", str(file)) == 0
    out, err = capsys.readouterr()
    found = re.search(r"^(nmea\+tcp://127\.0\.0\.1:(\d+)\?wait=0\.05): serves all clients$", err, re.MULTILINE)
    assert found is not None
    assert int(found[2]) > 0
    told = [line for line in err.splitlines() if found[1] in line]
    assert told[1:] == [
        f"warning: {found[1]}: no client connected within 0.05 s; the run continues",
        f"{found[1]}: sent nothing: no client connected",
    ]
    assert "RuntimeWarning" not in err
    assert [line for line in out.splitlines() if line.startswith("wrote ")] == [
        f"wrote {file}: 2 s simulated, {format_size(file.stat().st_size)}"
    ]


def test_what_was_sent_is_told(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client connects where the line says that the port is."""
    got: list[bytes] = []
    served = threading.Event()
    where: list[int] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found = re.match(r"pd0\+tcp://localhost:(\d+): serves all", record.getMessage())
            if found:
                where.append(int(found[1]))
                served.set()

    def read() -> None:
        served.wait(300.0)
        with socket.create_connection(("localhost", where[0]), timeout=60.0) as one:
            while part := one.recv(1 << 16):
                got.append(part)

    listener, logger = Listener(), logging.getLogger("navsense")
    thread = threading.Thread(target=read)
    thread.start()
    logger.addHandler(listener)
    try:
        assert run(monkeypatch, world, "pd0+tcp://localhost:0", str(world.with_name("a.pd0"))) == 0
    finally:
        logger.removeHandler(listener)
    thread.join(20.0)
    whole = world.with_name("a.pd0").read_bytes()
    assert len(whole) > 100
    assert b"".join(got) == whole
    err = capsys.readouterr().err
    assert f"pd0+tcp://localhost:{where[0]}: sent {len(whole)} bytes to 1 client\n" in err
    assert "warning" not in err


def test_two_clients_and_a_second_end(caplog: pytest.LogCaptureFixture) -> None:
    """What is told is told once, and of Python only to those who ask for it."""
    caplog.set_level(logging.INFO, logger="navsense")
    head = recordings.RecordingHeader(example_world(("dvl", Dvl.example_spec())), 1000, duration=1.0)
    writer = recordings.open_writer("nmea+tcp://127.0.0.1:0?wait=0", head)
    assert isinstance(writer, DevicePortWriter)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", writer.port)))
        until = time.monotonic() + 20.0
        while len(writer._server._clients) < 2 and time.monotonic() < until:
            time.sleep(0.005)
        writer._server.send(b"12345")
        writer.close()
        writer.close()
    name = f"nmea+tcp://127.0.0.1:{writer.port}?wait=0"
    assert caplog.messages == [f"{name}: serves all clients", f"{name}: sent 10 bytes to 2 clients"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("nmea+tcp://127.0.0.1:99999", r"nmea\+tcp://127\.0\.0\.1:99999 port: 99999; must be a number from 0 to 65535"),
        (
            "pd9+tcp://127.0.0.1:0",
            r"pd9\+tcp://127\.0\.0\.1:0 format of a port: pd9; must be one of pd0, pd6, wl, nmea",
        ),
        (
            "nmea+udp://127.0.0.1:0",
            r"nmea\+udp://127\.0\.0\.1:0 no address of a port; a port is FORMAT\+tcp://HOST:PORT",
        ),
        ("tcp://127.0.0.1:1033", r"tcp://127\.0\.0\.1:1033 no address of a port; .* FORMAT one of pd0, pd6, wl, nmea"),
        ("nmea+tcp:10110", r"nmea\+tcp:10110 no address of a port"),
    ],
)
def test_an_address_that_is_none_is_shown_as_it_was_given(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str, why: str
) -> None:
    """Before anything is said of it."""
    with pytest.raises(RecordingError, match=why):
        recordings.check_output(given)
    assert run(monkeypatch, world, given) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"error: {why}.*\n", err)


def test_a_port_in_use_is_all_that_is_said(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = f"nmea+tcp://127.0.0.1:{taken.getsockname()[1]}"
        assert run(monkeypatch, world, given) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {given} port is in use: ")
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
    """A part of a host's name has at most 63 characters, and an integer that Python reads 4300 digits."""
    given = f"pd0+tcp://{host}" + ":5000" * (":" not in host)
    assert run(monkeypatch, world, given) == 2
    assert re.search(f"^error: {re.escape(given)} {why}", capsys.readouterr().err)


def test_a_folder_with_a_colon_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "dive:2").mkdir()
    path = tmp_path / "dive:2" / "run.mcap"
    assert recordings.find_output_format(path).open_writer is McapWriter
    assert format_url(path) == str(path)
    with pytest.raises(RecordingError, match="no recording has this suffix"):
        recordings.check_output(path.with_suffix(".xyz"))


def test_warnings_in_python_stay_warnings(world: Path) -> None:
    with pytest.warns(
        RuntimeWarning, match=r"pd0\+tcp://127\.0\.0\.1:\d+\?wait=0\.01: no client connected within 0\.01 s"
    ):
        ns.record(ns.load(world), "pd0+tcp://127.0.0.1:0?wait=0.01", 0.5)
    before = warnings.showwarning, logging.getLogger("navsense").handlers[:]
    with print_library_messages():
        assert warnings.showwarning is not before[0]
    assert (warnings.showwarning, logging.getLogger("navsense").handlers) == before


def test_a_second_port_that_cannot_be_is_refused_before_the_first_is_served(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    second = "nmea+tcp://127.0.0.1:0?sensor=nobody"
    assert run(monkeypatch, world, "pd0+tcp://127.0.0.1:0?wait=1000", second) == 2
    err = capsys.readouterr().err
    assert "serves all clients" not in err
    assert "sensor: nobody; they are auv::base::dvl" in err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("dive.dvl.beem.pd0", "frame behind the sensor's name: beem; must be one of beam, instrument, ship, earth"),
        ("dive.dvl.beam.wl.json", "frame behind the sensor's name: beam; Water Linked JSON has none to choose"),
    ],
)
def test_a_word_behind_the_sensors_name_is_a_frame(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, problem: str
) -> None:
    assert run(monkeypatch, world, str(world.with_name(name))) == 2
    assert problem in capsys.readouterr().err
    assert not world.with_name(name).exists()
