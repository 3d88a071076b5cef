"""A session seen from another process: what changes comes over, what is asked for goes back."""

import os
import socket
import stat
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from tests.trainer.test_wire import same
from tests.tui.fake_session import FakeSession
from trainer import address
from trainer.breakpoints import parse
from trainer.control import Arm, Edit, SlowMotion
from trainer.serving import Server
from trainer.telemetry import Command, History, RunState
from trainer.trace import TraceRequest
from trainer.wire import PROTOCOL, pack, unpack
from tui.remote.session import Refused, RemoteSession


class Fake(FakeSession):
    """Remembers what was looked at."""

    looked_at = ()

    def look(self, request):
        self.looked_at = (*self.looked_at, request)


@pytest.fixture
def served(tmp_path):
    session = Fake(completed=60)
    server = Server(session, tmp_path)
    yield session, tmp_path
    server.close()
    assert not (tmp_path / "watch.sock").exists()


@pytest.fixture
def attach(served):
    viewers = []

    def attach(**options):
        viewers.append(RemoteSession(served[1], address.connect(served[1]), **options))
        viewers[-1].start()
        return viewers[-1]

    yield attach
    for viewer in viewers:
        viewer.close()


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def catch_up(viewer, session):
    wait_until(lambda: viewer.snapshot().seq == session.snapshot().seq)


def test_snapshot_curves_and_events_come_over_and_stay_the_same(served, attach):
    session, folder = served
    viewer = attach()
    for _ in range(5):
        catch_up(viewer, session)
        snapshot = session.snapshot()
        reached = replace(snapshot, info=replace(snapshot.info, run_dir=str(folder)))
        assert same(reached, viewer.snapshot())
        assert viewer.events.since(0)[1] == session.events.since(0)[1]
        assert viewer.history.tags == session.history.tags
        for tag in session.history.tags:
            assert same(tuple(session.history.curve(tag)), tuple(viewer.history.curve(tag)))
        session.finish_iteration()
        session.events.add("alert", "mind")


def test_the_folder_is_named_as_it_is_reached_from_here(served, attach):
    session, folder = served
    assert session.snapshot().info.run_dir != str(folder)  # its process stands elsewhere
    viewer = attach()
    catch_up(viewer, session)
    assert viewer.snapshot().info.run_dir == str(folder)


def test_only_what_has_changed_is_sent(served):
    session, folder = served
    connection = address.connect(folder)
    received = bytearray()

    def ask(question):
        connection.sendall(pack(question))
        while not (found := unpack(received)):
            received.extend(connection.recv(65536))
        return found[0]

    ask({"protocol": PROTOCOL})
    assert ask({"get": "news"})["history"].iterations == 60
    session.tick()
    news = ask({"get": "news"})
    assert news["history"] is None
    assert news["events"] == ()
    assert "info" not in news["changes"]
    assert "metrics" in news["changes"]  # the fake makes them anew
    assert "failure" not in news["changes"]
    session.finish_iteration()
    assert ask({"get": "news"})["history"].sums.shape[1] == 1
    connection.close()


def test_requests_with_arguments_travel_and_what_holds_comes_back(served, attach):
    session, _ = served
    one, reader = attach(), attach(only_reads=True)
    asked = [
        SlowMotion(0.5),
        Arm(parse("kl > 0.05 always")),
        Edit("env.commands.base_velocity.lin_vel_x", (-0.5, 0.5), "slower"),
    ]
    for request in asked:
        one.control(request)
        reader.control(SlowMotion(2.0))
    wait_until(lambda: one.snapshot().control.edits)
    assert session.control_requests == asked
    control = one.snapshot().control
    assert control.dwell == 0.5
    assert control.breakpoints == (parse("kl > 0.05 always"),)
    assert control.edits[0].changes[0].new == (-0.5, 0.5)
    assert control.adjustables == session.snapshot().control.adjustables


def test_two_control_and_one_only_reads(served, attach):
    session, _ = served
    one, two, reader = attach(), attach(), attach(only_reads=True)
    one.command(Command.PAUSE)
    wait_until(lambda: session.commands == [Command.PAUSE])
    two.command(Command.RUN)
    wait_until(lambda: session.commands == [Command.PAUSE, Command.RUN])
    reader.command(Command.STOP_NOW)
    reader._call("command", Command.STOP_NOW)  # not even if it tried
    request = TraceRequest(world=3)
    reader.look(request)
    wait_until(lambda: session.looked_at == (request,))
    assert session.commands == [Command.PAUSE, Command.RUN]
    reader.close()
    wait_until(lambda: session.looked_at == (request, None))


def _server_threads():
    return {thread for thread in threading.enumerate() if thread.name == "serving"}


def test_a_viewer_that_stops_reading_holds_nobody_up(served, attach):
    session, folder = served
    before = _server_threads()
    stuck = address.connect(folder)
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stuck.sendall(pack({"protocol": PROTOCOL}) + pack({"get": "news"}) * 50)
    viewer = attach()
    catch_up(viewer, session)
    assert _server_threads() <= before  # nobody gets a thread of their own
    stuck.close()
    session.finish_iteration()
    catch_up(viewer, session)


@pytest.mark.parametrize(
    "noise", [b"GET / HTTP/1.1\r\n\r\n", pack("hello"), pack(7), b"x" * 2_000_000]
)
def test_whatever_one_sends_no_other_suffers(served, attach, noise):
    session, folder = served
    viewer = attach()
    bad = address.connect(folder)
    try:
        bad.sendall(noise)
        bad.settimeout(5)
        assert bad.recv(10) == b""
    except OSError:
        pass  # closed while it was still talking
    session.finish_iteration()
    catch_up(viewer, session)


def test_another_version_is_refused_in_words(served, monkeypatch):
    monkeypatch.setattr("tui.remote.session.PROTOCOL", PROTOCOL + 1)
    with pytest.raises(Refused, match=f"version {PROTOCOL}"):
        RemoteSession(served[1], address.connect(served[1]))


def test_the_last_word_is_how_it_ended(tmp_path):
    session = Fake()
    server = Server(session, tmp_path)
    viewer = RemoteSession(tmp_path, address.connect(tmp_path))
    viewer.start()
    catch_up(viewer, session)
    session.command(Command.STOP_NOW)
    server.close()
    wait_until(lambda: viewer.snapshot().state is RunState.FINISHED)


def test_a_run_that_vanishes_was_killed(tmp_path):
    ours, theirs = socket.socketpair()
    theirs.sendall(pack({"protocol": PROTOCOL}))
    viewer = RemoteSession(tmp_path, ours)
    (tmp_path / "status.json").write_text('{"state": "running", "pid": 0}')
    viewer.start()
    theirs.close()
    viewer.snapshot()
    wait_until(lambda: viewer.snapshot().state is RunState.KILLED)
    assert "gone" in viewer.events.since(0)[1][-1].text


def test_the_socket_is_the_owners_alone_and_its_path_may_be_long(tmp_path):
    folder = tmp_path / ("a" * 100) / ("b" * 100)
    folder.mkdir(parents=True)
    (folder / "watch.sock").write_text("left over")
    listening = address.listen(folder)
    assert stat.S_IMODE((folder / "watch.sock").stat().st_mode) == 0o600
    connection = address.connect(folder)
    assert address.is_ours(listening.accept()[0])
    connection.close()
    listening.close()
    assert address.connect(folder) is None  # nobody listens any more
    address.remove(folder)
    assert not (folder / "watch.sock").exists()


def test_where_the_folder_takes_no_socket_another_does(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "run"
    folder.mkdir()
    bind, places = address._listening, []

    def refusing(path):
        places.append(path)
        if len(places) == 1:
            raise OSError("Operation not supported")
        return bind(path)

    monkeypatch.setattr(address, "_listening", refusing)
    listening = address.listen(folder)
    assert (folder / "watch.sock").is_file()
    assert stat.S_IMODE(os.stat(places[1]).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(places[1])).st_mode) == 0o700
    assert address.connect(folder) is not None
    listening.close()
    address.remove(folder)
    assert not os.path.exists(os.path.dirname(places[1]))


def test_a_history_and_its_copy_stay_the_same_while_bins_are_merged():
    history, copy = History(8), History(8)
    for iteration in range(1, 100):
        history.append(iteration, {"a": float(iteration), **({"b": 1.0} if iteration > 20 else {})})
        if iteration % 3 == 0:
            copy.absorb(history.part(copy.stride, len(copy)))
            for tag in "ab":
                for ours, theirs in zip(history.curve(tag), copy.curve(tag), strict=True):
                    np.testing.assert_array_equal(ours, theirs)
    assert history.part(copy.stride, len(copy)) is None
