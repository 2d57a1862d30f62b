"""A name that does not exist is answered with the one that was meant."""

import pytest

import accord


@pytest.mark.parametrize(
    ("name", "meant"),
    [("meen", "mean"), ("medain", "median"), ("Leger", "Ledger"), ("paln", "plan"), ("lba", "lab")],
)
def test_a_misspelt_name_of_the_package_is_asked_about(name, meant):
    with pytest.raises(AttributeError) as error:
        getattr(accord, name)
    assert str(error.value).startswith(
        f"module 'accord' has no attribute {name!r}: did you mean {meant!r}? Known: 'catalog', 'connect', 'correlation', "
    )


def test_a_name_that_is_like_none_gets_the_list():
    with pytest.raises(
        AttributeError, match=r"has no attribute 'avg': Known: 'catalog', .*'mean', 'mechanism'"
    ):
        accord.avg  # noqa: B018
    assert not hasattr(accord, "_repr_html_") and accord.lab.simulate and "lab" not in accord.__all__
