"""Sizes of the models of gguf_families.py, which reads them when it is imported. The small ones are those of the tests. Rows of the wide ones
are of whole blocks of 256 elements, so that their matrices can have all types."""

WIDTH, HEADS, KV_HEADS, DIM, INNER, CONTEXT = 32, 2, 1, 32, 64, 128
EXPERTS, EXPERT_INNER = 8, 32
# Latent attention: ranks, the part of a head without and with rotary embedding, and values of heads.
Q_RANK, RANK, BARE, TURNED, VALUE = 32, 32, 32, 16, 32
# State-space layers: elements of all heads, heads, groups of heads, places of a state, taps of the convolution. The last two are read as
# heads of keys and elements of a key by delta nets.
SSM_INNER, SSM_HEADS, SSM_GROUPS, SSM_STATE, SSM_TAPS = 64, 4, 2, 16, 4
# Elements of a head of delta nets with a decay of each place; the shorter row that experts of some models work on.
KDA, KDA_TAPS = 16, 4
SHORT = 64

WIDE = {
    "WIDTH": 256, "DIM": 128, "INNER": 512, "EXPERT_INNER": 256, "Q_RANK": 256, "RANK": 256, "BARE": 128, "TURNED": 64, "VALUE": 128,
    "SSM_INNER": 512, "SSM_STATE": 64, "KDA": 128, "SHORT": 256,
}  # fmt: skip
