import sys
import types

import torch

from respo.training.verl import entropy as module
from respo.training.verl.entropy import entropy, without_gradient


def test_the_entropy_of_each_row():
    logits_TV = torch.randn(7, 11, requires_grad=True)
    expected_T = torch.distributions.Categorical(logits=logits_TV.detach()).entropy()
    for size in (2, 7, 100):
        found_T = entropy(logits_TV, chunk_size=size)
        torch.testing.assert_close(found_T, expected_T)
        assert not found_T.requires_grad
    assert entropy(logits_TV.bfloat16()).dtype == torch.float32


def test_the_fsdp_engine_takes_it_for_a_while():
    engine = types.SimpleNamespace(compute_entropy_from_logits="verl's")
    with without_gradient(engine):
        assert engine.compute_entropy_from_logits is entropy
    assert engine.compute_entropy_from_logits == "verl's"


def test_the_megatron_engine_calculates_in_chunks_without_a_gradient(monkeypatch):
    verls = types.ModuleType("verls")
    given = []

    def chunked(logits_BTV, chunk_size):
        given.append((chunk_size, torch.is_grad_enabled()))
        return logits_BTV.sum(-1)

    verls.vocab_parallel_entropy_with_chunking = chunked
    verls.vocab_parallel_entropy = "verl's"
    monkeypatch.setitem(sys.modules, "verls", verls)
    engine = type("Engine", (), {"__module__": "verls"})()
    with without_gradient(engine):
        assert verls.vocab_parallel_entropy(torch.ones(1, 2, 3)).tolist() == [[3, 3]]
    assert given == [(module.CHUNK_TOKENS, False)]
    assert verls.vocab_parallel_entropy == "verl's"


def test_other_engines_stay_as_they_are():
    with without_gradient(object()):
        pass
