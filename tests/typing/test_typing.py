"""Type checkers accept right uses of hamr and report wrong ones, line by line."""

import pytest

from tests.typing import checkers


@pytest.mark.parametrize(
    "checker",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                checkers.module_of(name) is None, reason=f"{name} is not installed"
            ),
        )
        for name in checkers.CHECKERS
    ],
)
@pytest.mark.parametrize("file", checkers.FILES)
def test_errors_are_where_they_are_expected(checker, file):
    path = checkers.FILES[file]
    found, wanted = checkers.reported(checker, path), checkers.expected(path)
    assert found.keys() == wanted, {i: found.get(i) for i in found.keys() ^ wanted}


def test_there_are_thirty_wrong_uses():
    assert len(checkers.expected(checkers.FILES["wrong"])) >= 30
    assert not checkers.expected(checkers.FILES["right"])
