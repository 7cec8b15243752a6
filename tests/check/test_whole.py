from respo.check.folder import Folder
from respo.check.whole import check_folder


def test_a_finished_study_is_whole(finished_study):
    folder = Folder(finished_study)
    counts = check_folder(folder)
    assert folder.found.all == []
    assert (counts.cells, counts.tables) == (3, 1)
