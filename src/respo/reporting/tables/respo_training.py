"""The numbers of the training curves: early peak and late score. ReSPO, Fig. 3 and Sec. 4.3."""

from respo.reporting import selection
from respo.reporting.training import Summary

PRINTED = ("fig3", "sec4.3, training")
SECTIONS = ()
SUMMARY = Summary(
    id="respo/training",
    title="training scores",
    runs=selection.full_length,
    otherwise="shows training runs, and the study has none",
)
applies, inputs, make = SUMMARY.applies, SUMMARY.inputs, SUMMARY.make
