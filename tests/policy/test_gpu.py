import pytest
import torch

from respo.policy import load_policy, sample, save_policy, token_log_probs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

PROMPTS = [[5, 14, 6, 17], [8, 14, 9, 15, 7, 16, 4, 17], [4]]
GROUP, LIMIT = 64, 48


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_sampling_on_a_gpu(policy, tmp_path, top_p):
    save_policy(policy, tmp_path / "policy")
    on_gpu = load_policy(tmp_path / "policy", "cuda")
    uniform_BT = torch.rand(len(PROMPTS) * GROUP, LIMIT, generator=torch.Generator().manual_seed(0))
    routes = policy.num_experts > 0
    samples = sample(on_gpu, PROMPTS, GROUP, LIMIT, uniform_BT, top_p=top_p, record_routes=routes)
    assert samples.tokens_BT.device.type == "cuda"
    on_cpu = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, top_p=top_p)
    # Rounding may move a number over the border between two tokens, hardly ever.
    same_B = (samples.tokens_BT.cpu() == on_cpu.tokens_BT).all(1)
    assert same_B.float().mean() > 0.97
    for row in range(0, len(uniform_BT), 7):
        length = int(samples.length_B[row])
        response = samples.tokens_BT[row, :length].tolist()
        ids_BT = torch.tensor([PROMPTS[row // GROUP] + response], device="cuda")
        replay = samples.routes_LBSK[:, row : row + 1, : ids_BT.shape[1]] if routes else None
        log_prob_BT, _ = token_log_probs(on_gpu, ids_BT, 1.0, routes_LBTK=replay)
        torch.testing.assert_close(
            samples.log_prob_BT[row, :length], log_prob_BT[0, -length:], rtol=0, atol=1e-4
        )
