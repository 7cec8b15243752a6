import hashlib

import pyarrow as pa
import pytest

from respo.cli import UserError
from respo.environment import environment
from respo.files import read_json, sha256_of, write_json
from respo.parquet import write_parquet
from respo.provenance import sources


def test_digest_is_that_of_sorted_lines():
    expected = hashlib.sha256(b"a 1\nb 2\n").hexdigest()[:12]
    assert sources.digest({"b": "2", "a": "1"}) == expected
    assert sources.digest({"b": "2", "a": "3"}) != expected


@pytest.mark.parametrize("suffix", ["md", "csv", "contrasts.csv", "png"])
def test_one_record_for_all_files_of_a_product(tmp_path, suffix):
    assert sources.record_of(tmp_path / f"x.{suffix}") == tmp_path / "x.sources.json"


def test_record(tmp_path):
    made = [tmp_path / "tables/p/t.md", tmp_path / "tables/p/t.more.csv"]
    made[0].parent.mkdir(parents=True)
    for path in made:
        path.write_text(path.name)
    files = {"study.yaml": "1", "a/cell.json": "2"}
    path = sources.write_sources(tmp_path, "s", made, "0123", files, "numpy")
    assert path == tmp_path / "tables/p/t.sources.json"
    record = sources.read_sources(path)
    assert record.pop("self_sha256")
    assert record == {
        "study": "s",
        "made_from": "0123",
        "environment": environment("numpy"),
        "products": {f"tables/p/{p.name}": sha256_of(p) for p in made},
        "sources": files,
    }


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda record: [record], "study: is missing or of another kind"),
        (lambda record: {**record, "sources": []}, "sources: is missing or of another kind"),
        (lambda record: {**record, "sources": {"/a": "0"}}, "sources: '/a' is no name of a file"),
        (lambda record: {**record, "products": {"a/../b": "0"}}, "products: 'a/../b' is no name"),
        (lambda record: {**record, "sources": {"a": 1}}, "sources: is missing or of another kind"),
        (lambda record: {**record, "study": "another", "self_sha256": "x"}, "was changed or damag"),
    ],
)
def test_bad_records(tmp_path, damage, message):
    (tmp_path / "t.md").touch()
    path = sources.write_sources(tmp_path, "s", [tmp_path / "t.md"], "0", {})
    write_json(path, damage({k: v for k, v in read_json(path).items() if k != "self_sha256"}))
    with pytest.raises(UserError, match=message) as error:
        sources.read_sources(path)
    assert str(error.value).startswith(f"{path}: ")


def test_state_of_a_source(tmp_path):
    path = tmp_path / "cell.json"
    assert sources.state(path, "x") == "missing"
    path.write_text("1")
    assert sources.state(path, sha256_of(path)) == "unchanged"
    assert sources.state(path, "x") == "changed"
    metrics = tmp_path / "metrics.parquet"
    metrics.write_text("damaged")
    assert sources.state(metrics, sha256_of(metrics)) == "changed"


def test_the_papers_numbers_lie_beside_the_study(tmp_path):
    assert sources.resolve(tmp_path, "study.yaml") == tmp_path / "study.yaml"
    assert (
        sources.resolve(tmp_path, "reference/respo.csv") == sources.CONFIG / "reference/respo.csv"
    )
    packed = tmp_path / "reference" / "respo.csv"
    packed.parent.mkdir()
    packed.touch()
    assert sources.resolve(tmp_path, "reference/respo.csv") == packed


def test_times_make_no_other_metrics(tmp_path):
    def sha256(seconds, score):
        table = pa.table({"update": [1], "score": [score], "seconds": [seconds]})
        write_parquet(tmp_path / "metrics.parquet", table, {"config_sha256": "c"})
        return sources.source_sha256(tmp_path / "metrics.parquet")

    assert sha256(1.0, 0.5) == sha256(2.0, 0.5)
    assert sha256(1.0, 0.5) != sha256(1.0, 0.25)
