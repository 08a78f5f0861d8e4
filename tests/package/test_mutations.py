"""That each line of code which `make mutations` takes out is still where it looks for it."""

import pytest

from build_support.mutations import MUTATIONS, mutated
from tests.support.paths import ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_it_changes_the_code(mutation):
    assert mutated(mutation) != (ROOT / mutation.file).read_text()


def test_their_names_tell_them_apart():
    names = [mutation.name for mutation in MUTATIONS]
    assert len(set(names)) == len(names)
