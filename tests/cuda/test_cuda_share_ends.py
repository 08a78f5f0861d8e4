"""What was opened of another process's memory ends beside the program, in any order."""

import os
import random
import socket

import pytest

from tests.cuda.test_cuda_share import WAYS, lets_go
from tests.support.processes import scaled, wait_until


@pytest.mark.parametrize("way", WAYS)
def test_memory_is_opened_again_as_soon_as_it_was_let_go_of(processes, device, way):
    """The driver may have it open still: it opens no allocation twice."""
    source, user = processes(), processes()
    source.make("a", (1000,), "f4", way, device, 3)
    source.share("a")
    frame, descriptors, _, _ = socket.recv_fds(source.connection, 4096, 4)
    user.tell("open_often", scaled(500, 100))
    socket.send_fds(user.connection, [frame], descriptors)
    assert user.reply() == {3000.0}
    for each in descriptors:
        os.close(each)
    source.drop("a")
    lets_go(source, way)


@pytest.mark.parametrize("way", WAYS)
def test_a_child_forked_at_once_has_nothing_of_it(processes, device, way):
    maker, user = processes(), processes()
    for _ in range(3):
        maker.make("a", (1000,), "f4", way, device, 3)
        maker.hands(user, "a")
        maker.drop("a")
        user.drop_and_fork("a")
        lets_go(maker, way)
    user.end_children()


@pytest.mark.parametrize("way", WAYS)
def test_a_process_killed_at_once_lets_go(processes, device, way):
    maker = processes()
    for _ in range(2):
        user = processes()
        maker.make("a", (1000,), "f4", way, device, 3)
        maker.hands(user, "a")
        maker.drop("a")
        user.tell("drop_and_die", "a")
        user.process.wait(60)
        lets_go(maker, way)


@pytest.mark.parametrize("plainly", [False, True], ids=["Python", "C"])
@pytest.mark.parametrize("way", WAYS)
def test_a_child_has_nothing_of_what_is_shared_later(processes, device, way, plainly):
    """The sockets of the next share are there when the process forks."""
    maker, user = processes(), processes()
    for _ in range(3):
        maker.make("a", (1000,), "f4", way, device, 3)
        maker.hands(user, "a")
        maker.fork(plainly)
        maker.make("b", (1000,), "f4", way, device, 4)
        maker.hands(user, "b")
        for name in "ab":
            user.drop(name)
            maker.drop(name)
        lets_go(maker, way)
    maker.end_children()


STEPS = ["make", "hand", "hand", "hand", "drop", "drop", "fill", "read", "part"]


@pytest.mark.parametrize("way", WAYS)
def test_walk(processes, device, way):
    """Beside a model: what each buffer has, and who has it open by which name."""
    chance = random.Random(15)
    maker, users = processes(), [processes() for _ in range(2)]
    model, opened = {}, [{}, {}]
    for step in range(scaled(300, 60)):
        name, who = f"b{step}", chance.randrange(2)
        user, its = users[who], opened[who]
        match chance.choice(STEPS):
            case "make" if len(model) < 6:
                model[name] = step
                maker.make(name, (500,), "f4", way, device, step)
            case "part" if model:
                of = chance.choice(list(model))
                maker.part("part", of, slice(100, 200))
                maker.hands(user, "part")
                assert user.values("part") == [model[of]] * 100
                user.drop("part")
                maker.drop("part")
            case "hand" if model.keys() - its:
                given = chance.choice(sorted(model.keys() - its))
                maker.hands(user, given)
                its[given] = None
            case "drop" if its:
                gone = chance.choice(sorted(its))
                user.drop(gone)
                del its[gone]
            case "fill" if its:
                changed = chance.choice(sorted(its))
                user.fill(changed, step)
                model[changed] = step
            case "read" if its:
                for each in its:
                    assert user.values(each) == [model[each]] * 500
    for user, its in zip(users, opened, strict=True):
        for each in its:
            assert user.values(each) == [model[each]] * 500
            user.drop(each)
    for each in model:
        maker.drop(each)
    lets_go(maker, way)


@pytest.mark.parametrize("way", WAYS)
def test_walk_of_processes_that_are_killed(processes, device, way):
    """Beside a model, as above; what a process has open stays as it is until it lets go or ends."""
    chance = random.Random(23)
    makers = [processes() for _ in range(2)]
    users, first = [processes() for _ in range(3)], processes()
    files = {}
    for maker in makers:
        maker.make("a", (500,), "f4", way, device, 1)
        maker.hands(first, "a")
        maker.drop("a")
        first.drop("a")
    first.kill()
    for maker in makers:
        lets_go(maker, way)
        files[maker] = maker.files()
    model = {}  # the value, who has made it, and where it is in place there
    opened = {user: set() for user in users}
    for step in range(scaled(400, 80)):
        who = chance.randrange(3)
        user = users[who]
        its = opened[user]
        match chance.choice(["make", "hand", "hand", "hand", "drop", "forget", "read", "end"]):
            case "make" if len(model) < 8:
                maker = chance.choice(makers)
                maker.make(f"b{step}", (500,), "f4", way, device, step)
                model[f"b{step}"] = [step, maker, True]
            case "hand" if there := sorted(n for n in model.keys() - its if model[n][2]):
                name = chance.choice(there)
                model[name][1].hands(user, name)
                its.add(name)
            case "drop" if its:
                name = chance.choice(sorted(its))
                user.drop(name)
                its.remove(name)
            case "forget" if there := sorted(n for n in model if model[n][2]):
                name = chance.choice(there)
                model[name][1].drop(name)  # users have it still
                model[name][2] = False
            case "read":
                for name in its:
                    assert user.values(name) == [model[name][0]] * 500
            case "end" if chance.randrange(2):
                if its and chance.randrange(2):
                    user.drop_and_fork(its.pop())
                    user.end_children()
                user.kill()
                del opened[user]
                users[who] = processes()
                opened[users[who]] = set()
        model = {
            name: each
            for name, each in model.items()
            if each[2] or any(name in had for had in opened.values())
        }
    for user, its in opened.items():
        for name in its:
            assert user.values(name) == [model[name][0]] * 500
    makers[1].kill()  # users let go of what was its
    for user, its in opened.items():
        for name in sorted(its):
            user.drop(name)
        wait_until(lambda user=user: user.live(way)[1] == 0)
        user.kill()
    for name, (_, maker, there) in model.items():
        if there and maker is makers[0]:
            maker.drop(name)
    lets_go(makers[0], way)
    wait_until(lambda: makers[0].files() <= files[makers[0]])  # nobody is watched
