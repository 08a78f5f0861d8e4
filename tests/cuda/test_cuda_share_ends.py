"""What was opened of another process's memory ends beside the program, in any order."""

import os
import random
import socket

import pytest

from tests.cuda.test_cuda_share import WAYS, lets_go
from tests.support.processes import scaled


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
