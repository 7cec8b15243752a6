import re
import shutil

import pytest

from respo.check import __main__ as module


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command; return exit code and what it printed."""

    def check(folder, *options):
        monkeypatch.setattr("sys.argv", ["check", str(folder), *options])
        code = 0
        try:
            module.main()
        except SystemExit as stopped:
            code = stopped.code
        return code, capsys.readouterr().out

    return check


def test_a_whole_study(finished_study, run):
    code, out = run(finished_study)
    assert code == 0
    out = out.partition(" where it is from\n")[2]
    whole = rf"{finished_study}: whole\. \d+ files, 3 cells summed up again, 1 tables made again"
    assert re.match(whole, out)


def test_what_is_wrong_comes_with_commands(study_copy, run, monkeypatch):
    cell = "mini/grpo/N2/seed1/eval/2/easy"
    path = study_copy / f"{cell}/scores.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    (study_copy / "figures/respo/fig3.pdf").unlink()
    (study_copy / "report.html").write_text("<html>")
    for number in range(25):
        (study_copy / f"{number:02d}.txt").touch()
    shutil.rmtree(study_copy / "mini/grpo/N2/seed1/checkpoints/2")
    monkeypatch.chdir(study_copy.parents[1])
    code, out = run("results/mini")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "damaged, or of other files than lie there:"
    assert lines[1].startswith(f"  results/mini/{cell}/scores.parquet: not a readable Parquet file")
    report = "  results/mini/report.html: is cut short: </html> is not its end"
    words = f"results/mini/{cell}/scores.parquet results/mini/report.html"
    assert lines[2:5] == [
        report,
        f"  snakemake --force {words} --config study=mini",
        "  makes them anew; then snakemake as usual, for what depends on them",
    ]
    assert lines[5:8] == [
        "missing (snakemake results/mini/TARGET --config study=mini):",
        "  figures/respo/fig3.pdf, target figures/respo/fig3.png",
        "  mini/grpo/N2/seed1/checkpoints/2, target mini/grpo/N2/seed1/train.json",
    ]
    files = len([p for p in study_copy.rglob("*") if p.is_file()])
    assert lines[8:] == [
        "foreign:",
        "  results/mini/00.txt and 24 more: belongs to nothing that study.yaml names",
        f"results/mini: 2 damaged, 2 missing, of {files} files",
    ]


def test_a_run_on_another_disk(study_copy, run):
    folder = study_copy / "mini/grpo/N2/seed1"
    folder.symlink_to(shutil.move(folder, study_copy.parents[1] / "elsewhere"))
    code, out = run(study_copy)
    assert code == 0
    elsewhere = study_copy.parents[1] / "elsewhere"
    assert out.startswith(f"elsewhere:\n  {folder}: is a link to {elsewhere}, followed\nnot compar")


def test_no_folder_of_a_study(tmp_path, run):
    code, out = run(tmp_path)
    assert str(code).startswith(f"error: {tmp_path / 'study.yaml'}: no such file; give the results")
    assert out == ""


def test_the_words_for_few_and_for_long_work(study_copy, run, monkeypatch, capsys):
    monkeypatch.setattr("respo.check.folder.PROGRESS_SECONDS", -1.0)
    monkeypatch.setattr("sys.argv", ["check", str(study_copy), "--skip-weights"])
    module.main()
    told = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"\d+ files, \d+ MB read; now [\w./-]+", told[-1])


def test_of_a_changed_study_only_that_is_made_anew(study_copy, run, monkeypatch):
    path = study_copy / "study.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    (study_copy / "explore.html").write_text("<html>")
    monkeypatch.chdir(study_copy.parents[1])
    code, out = run("results/mini")
    assert code == 1
    assert "  snakemake --force results/mini/study.yaml --config study=mini\n" in out
    assert "  makes it anew; then check again; then snakemake as usual, for what" in out
