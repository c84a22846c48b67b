"""Plain numpy versions of the formulas, in float64, written from the papers and not from the code.

`PI` holds one function per rule that has a distribution `pi`, `VERDICT` one per rule that judges
the drafted token; both work on one position: float64 [V].
"""

import itertools

import numpy as np

# Tests compile many small programs and run each for a moment: `jax.jit(compiler_options=...)`.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


def softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def one_hot(logits):
    return np.eye(len(logits))[int(np.argmax(logits))]


def working(logits, temperature, top_k=0, top_p=1.0):
    """One position's working distribution: temperature, then top-k, then top-p, then softmax."""
    logits = np.asarray(logits, np.float64)
    if temperature <= 1e-4:
        return one_hot(logits)
    scaled = logits / temperature
    order = sorted(range(len(scaled)), key=lambda v: (-scaled[v], v))
    if top_k:
        order = order[:top_k]
    probabilities = softmax(scaled[order])
    if top_p < 1:
        kept, total = 0, 0.0
        while kept < len(order) and (kept == 0 or total < top_p):
            total += probabilities[kept]
            kept += 1
        order = order[:kept]
    result = np.zeros(len(scaled))
    result[order] = softmax(scaled[order])
    return result


def entropy(p):
    return -sum(x * np.log(x) for x in p if x > 0)


def tv(p, q):
    return np.maximum(q - p, 0).sum()


def kl(p, pi):
    return sum(a * np.log(a / max(b, 1e-300)) for a, b in zip(p, pi, strict=True) if a > 0)


def normalise(weights, fallback):
    total = weights.sum()
    return weights / total if total > 0 else fallback


def _choice(keep):
    return lambda q, p, qh, ph, a: q if keep(q, p, qh, ph, a) else p


def _scaled(a, p, q):
    distance = tv(p, q)
    return a * distance if distance > 0 else 0.0


def _token_specific(accepted):
    def pi(q, p, qh, ph, a):
        members = accepted(qh, ph, a)
        return np.where(members, q, 0) + (1 - q[members].sum()) * p

    return pi


def _v3_tail(q, p, qh, ph, a):
    members = (ph >= (1 - a) * ph.max()) & (a >= 0)
    kept = np.where(members, q, np.minimum(q, p))
    return kept + (1 - kept.sum()) * normalise(np.maximum(0, p - q), p)


PI = {
    "speculative": lambda q, p, qh, ph, a: p,
    "draft_only": lambda q, p, qh, ph, a: q,
    "mixture": lambda q, p, qh, ph, a: (1 - a) * p + a * q,
    "chow": _choice(lambda q, p, qh, ph, a: a >= 0 and qh.max() >= 1 - a),
    "chow_log": _choice(lambda q, p, qh, ph, a: a >= 0 and entropy(qh) <= a),
    "diff": _choice(lambda q, p, qh, ph, a: qh.max() >= ph.max() - a),
    "diff_log": _choice(lambda q, p, qh, ph, a: entropy(qh) <= entropy(ph) + a),
    "opt": _choice(lambda q, p, qh, ph, a: qh.max() >= ph.max() - _scaled(a, p, q)),
    "opt_log": _choice(lambda q, p, qh, ph, a: entropy(qh) <= entropy(ph) + _scaled(a, p, q)),
    "token_v1": _token_specific(lambda qh, ph, a: qh >= ph.max() - a),
    "token_v2": _token_specific(lambda qh, ph, a: (ph >= ph.max() - a) & (a >= 0)),
    "token_v3": _token_specific(lambda qh, ph, a: (ph >= (1 - a) * ph.max()) & (a >= 0)),
    "token_v3_lossless_tail": _v3_tail,
}


def _lossy(q, p, x, a, beta=1.0):
    if beta == "normalised":
        beta = 1 / normalising_inverse_beta(q, p, a)
    accept = 1.0 if p[x] >= (1 - a) * q[x] else p[x] / ((1 - a) * q[x])
    return accept, normalise(np.maximum(0, p / beta - q), p)


def lossy_closed_form(q, p, a, inverse_beta):
    ceiling = np.divide(p, 1 - a) if a < 1 else np.where(p > 0, np.inf, 0)
    # At alpha = 1 everything stands, what the target excludes as well.
    kept = q if a == 1 else np.minimum(q, ceiling)
    return np.maximum(kept, p * inverse_beta)


def normalising_inverse_beta(q, p, a):
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if lossy_closed_form(q, p, a, middle).sum() < 1:
            low = middle
        else:
            high = middle
    return high


def _typical(q, p, x, a, eps=0.09, delta=0.3):
    return float(p[x] > min(eps, delta * np.exp(-entropy(p)))), p


def cactus_raised(p_x, a):
    variance = p_x * max(0.0, 1 - p_x)
    return min(1.0, p_x + (np.sqrt(2 * a * variance) if variance > 0 else 0.0))


def _cactus(q, p, x, a):
    h = np.empty_like(p)
    h[x] = cactus_raised(p[x], a)
    others = np.arange(len(p)) != x
    h[others] = p[others] * (1 - h[x]) / p[others].sum() if p[others].sum() > 0 else 0.0
    return min(1.0, h[x] / q[x]), normalise(np.maximum(0, h - q), p)


def mentored(q, p, budget):
    """The law max(min(q, c p), b p) with KL(p || law) = budget, by bisection in bisection."""
    q, p = (np.asarray(x, np.float64) / np.sum(x, dtype=np.float64) for x in (q, p))

    def divergence(pi):
        return np.sum(p[p > 0] * -np.log(np.maximum(pi[p > 0] / p[p > 0], 1e-30)))

    def law(log_c):
        kept = np.minimum(q, np.exp(log_c) * p)
        low, high = 0.0, 1.0
        for _ in range(60):
            b = (low + high) / 2
            low, high = (b, high) if np.maximum(kept, b * p).sum() < 1 else (low, b)
        return np.maximum(kept, high * p)

    if divergence(q) <= budget:
        return q
    low, high = 0.0, np.log(1e30)
    for _ in range(60):
        log_c = (low + high) / 2
        low, high = (log_c, high) if divergence(law(log_c)) <= budget else (low, log_c)
    return law(low)


VERDICT = {"lossy": _lossy, "typical": _typical, "cactus": _cactus}


def rejection(pi, q, x):
    """Acceptance probability and replacement of one token under `pi`."""
    return min(1.0, pi[x] / q[x]), normalise(np.maximum(0, pi - q), pi)


def block_law(pi, q, bonus, draft, method):
    """Law of (accepted count, next token) for one draft, by token or block verification.

    Args:
        pi: [n][V], one per drafted token.
        q: [n][V].
        bonus: [V], what the bonus token is drawn from.
        draft: n tokens.
        method: "token" or "block".

    Returns:
        list of (probability of this count, distribution [V] of the next token), n + 1 entries.
    """
    n = len(draft)
    if method == "token":
        a = [min(1.0, pi[i][x] / q[i][x]) for i, x in enumerate(draft)]
        counts = [np.prod(a[:i]) * (1 - a[i]) for i in range(n)] + [np.prod(a)]
        following = [normalise(np.maximum(0, pi[i] - q[i]), pi[i]) for i in range(n)]
        return list(zip(counts, [*following, bonus], strict=True))
    w = [1.0]
    for i, x in enumerate(draft):
        w.append(min(1.0, w[-1] * pi[i][x] / q[i][x]))
    h, following = [1.0], []
    for i in range(n):
        residual = np.maximum(0, w[i] * pi[i] - q[i])
        denominator = residual.sum() + 1 - w[i]
        if i:
            h.append(residual.sum() / denominator if denominator > 1e-12 else 1.0)
        following.append(normalise(residual, pi[i]))
    h = h[:n] + [w[n]] if n else [1.0]
    counts = [h[i] * np.prod([1 - x for x in h[i + 1 :]]) for i in range(n + 1)]
    return list(zip(counts, [*following, bonus], strict=True))


def drafts(vocab, gamma, eos=None, room=None):
    """All drafts of up to gamma tokens; those that hold `eos` end with it."""
    longest = gamma if room is None else min(gamma, room)
    found = []
    for draft in itertools.product(range(vocab), repeat=longest):
        if eos in draft:
            draft = draft[: draft.index(eos) + 1]
        found.append(draft)
    return sorted(set(found))


def chain_law(step, vocab, length, eos=None):
    """Law of whole outputs under a next-token distribution `step(prefix) -> [V]`."""
    law = {(): 1.0}
    for _ in range(length):
        grown = {}
        for prefix, mass in law.items():
            if eos is not None and eos in prefix:
                grown[prefix] = mass
                continue
            for v, probability in enumerate(step(prefix)):
                if probability > 0:
                    grown[prefix + (v,)] = mass * probability
        law = grown
    return law


def speculative_law(pi, q, p, vocab, length, gamma, method, bonus, eos=None):
    """Law of whole outputs of the speculative loop, by enumeration of every block.

    Args:
        pi, q, p: functions of a prefix (tuple of tokens), each -> [V].
        vocab: V.
        length: cap on the output.
        gamma: block size.
        method: "token" or "block".
        bonus: "target" or "rule".
        eos: id that ends an output, or None.
    """
    starts, final = {(): 1.0}, {}
    while starts:
        prefix = min(starts, key=len)
        mass = starts.pop(prefix)
        if len(prefix) == length or (eos is not None and eos in prefix):
            final[prefix] = final.get(prefix, 0.0) + mass
            continue
        for draft in drafts(vocab, gamma, eos, length - len(prefix)):
            before = [prefix + draft[:i] for i in range(len(draft) + 1)]
            q_rows = [q(b) for b in before[:-1]]
            weight = mass * np.prod([row[x] for row, x in zip(q_rows, draft, strict=True)])
            if weight == 0:
                continue
            pi_rows = [pi(b) for b in before[:-1]]
            whole_ends = len(before[-1]) == length or (eos is not None and eos in draft)
            last = None if whole_ends else (pi if bonus == "rule" else p)(before[-1])
            for n, (chance, following) in enumerate(
                block_law(pi_rows, q_rows, last, draft, method)
            ):
                if following is None:
                    starts[before[n]] = starts.get(before[n], 0.0) + weight * chance
                    continue
                for v in range(vocab):
                    grown = before[n] + (v,)
                    share = weight * chance * following[v]
                    if share:
                        starts[grown] = starts.get(grown, 0.0) + share
    return final
