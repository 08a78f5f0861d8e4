"""A server that leaves forked children behind: ``python -m tests.store.forking PATH OPTIONS``.

OPTIONS are the Server's in JSON. It forks a child, which sleeps, for each line that it reads.
"""

from __future__ import annotations

import json
import os
import sys
import time

from hamr.store import Server


def child() -> None:
    for number in (0, 1, 2):
        os.close(number)
    time.sleep(600)
    os._exit(0)


def main() -> None:
    with Server(sys.argv[1], **json.loads(sys.argv[2])) as server:
        print(server.path, flush=True)
        for _ in sys.stdin:
            if (pid := os.fork()) == 0:
                child()
            print(pid, flush=True)


if __name__ == "__main__":
    main()
