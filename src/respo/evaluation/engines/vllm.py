"""vLLM, for published models: prompts go through the chat template of the checkpoint.

Each response has a seed of its own, so any part of a benchmark can be sampled again. The rounding
of 16-bit numbers depends on what else is computed at the same time, and can make a response take
another turn all the same; VLLM_BATCH_INVARIANT=1 excludes that, on the GPUs where vLLM has it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.evaluation.engines import Request, Response, Sampling, digest, sampler_code
from respo.files import read_json
from respo.policy import chat
from respo.policy.chat import load_chat

# What vLLM reads from the environment, where the user has not set it.
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Nobody is told what is evaluated here.
    "VLLM_NO_USAGE_STATS": "1",
    # The engine in this process: what is computed together is the same in every start, and nothing
    # outlives this process and keeps its GPUs.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


class VllmEngine:
    """Samples all requests at once, as many at a time as the memory holds."""

    def __init__(self, checkpoint: Path, thinking: bool | None, dtype: str, tensor_parallel: int):
        """Read the tokenizer; the weights are loaded when the first response is wanted.

        Raises:
            UserError: vLLM is not installed, or there is no tokenizer, chat template or
                configuration.
        """
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            import transformers
            import vllm
            from vllm import envs
            from vllm.platforms import current_platform
        except ImportError as error:
            raise UserError(
                f"vLLM cannot be imported ({error}); start this in the environment `vllm`, or "
                f"choose --engine local"
            ) from None
        self.checkpoint, self.dtype = checkpoint, dtype
        self.tensor_parallel = tensor_parallel
        self.chat = load_chat(checkpoint, thinking)
        self.positions = _positions(checkpoint / "config.json")
        self.made_from: dict[str, Any] = {
            "engine": "vllm",
            "device": current_platform.get_device_name(),
            "dtype": dtype,
            "tensor_parallel": tensor_parallel,
            "batch_invariant": envs.VLLM_BATCH_INVARIANT,
            "thinking": thinking,
            "chat_template_sha256": self.chat.template_sha256,
            "sampler_code": sampler_code(Path(__file__), Path(chat.__file__)),
        }
        self.versions = {"vllm": vllm.__version__, "transformers": transformers.__version__}

    def encode(self, prompt: str) -> list[int]:
        """See `Engine`."""
        return self.chat.encode(prompt)

    def sample(self, requests: list[Request], sampling: Sampling) -> Iterator[list[Response]]:
        """See `Engine`."""
        if not requests:
            return iter(())
        from vllm import SamplingParams
        from vllm.inputs import tokens_input
        from vllm.sampling_params import RequestOutputKind

        longest = max(len(request.prompt) for request in requests)
        engine = self._start(longest + sampling.max_response_tokens)
        for number, request in enumerate(requests):
            parameters = SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=sampling.max_response_tokens,
                seed=seed_of(sampling.seed, *request.key),
                output_kind=RequestOutputKind.FINAL_ONLY,
            )
            engine.add_request(str(number), tokens_input(request.prompt), parameters)
        return self._finished(engine, requests)

    def _finished(self, engine: Any, requests: list[Request]) -> Iterator[list[Response]]:
        while engine.has_unfinished_requests():
            yield [
                Response(
                    *requests[int(finished.request_id)].key,
                    finished.outputs[0].text,
                    len(finished.outputs[0].token_ids),
                    finished.outputs[0].finish_reason == "length",
                )
                for finished in self._step(engine)
            ]

    def _start(self, positions: int) -> Any:
        """Load the weights; return vLLM's engine."""
        from vllm import LLM

        try:
            return LLM(
                model=str(self.checkpoint),
                dtype=self.dtype,
                tensor_parallel_size=self.tensor_parallel,
                max_model_len=positions,
                # Pickled weights can execute anything.
                load_format="safetensors",
                trust_remote_code=False,
                disable_log_stats=True,
            ).llm_engine
        except Exception as error:
            raise UserError(
                f"{self.checkpoint}: vLLM does not start ({_line(error)}); the lines above say "
                f"more. Where memory is short, take more GPUs (--tensor-parallel)"
            ) from None

    def _step(self, engine: Any) -> list[Any]:
        try:
            return engine.step()
        except Exception as error:
            raise UserError(
                f"{self.checkpoint}: vLLM has died ({_line(error)}); the lines above say more. "
                f"Start again: finished responses are kept"
            ) from None


def seed_of(seed: int, problem_id: str, sample: int) -> int:
    """The seed of a response, below 2**63, that depends on nothing but the arguments."""
    return int.from_bytes(digest(seed, problem_id, sample)[:8], "little") >> 1


def _positions(path: Path) -> int:
    config = read_json(path)
    positions = config.get("max_position_embeddings") if isinstance(config, dict) else None
    if not isinstance(positions, int):
        raise UserError(f"{path}: max_position_embeddings is {positions!r}; write a whole number")
    return positions


def _line(error: Exception) -> str:
    # Without the details and the address that pydantic adds.
    text = " ".join(str(error).split()).partition(" [type=")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
