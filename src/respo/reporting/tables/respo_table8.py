"""Training with and without routing replay. ReSPO, Table 8."""

from respo.reporting import selection
from respo.reporting.training import Summary

PRINTED = ("table8",)
SECTIONS = ()
SUMMARY = Summary(
    id="respo/table8",
    title="routing replay",
    runs=selection.replays,
    otherwise="shows runs with routing replay beside those without, and the study has none",
)
applies, inputs, make = SUMMARY.applies, SUMMARY.inputs, SUMMARY.make
