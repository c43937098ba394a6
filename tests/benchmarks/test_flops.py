from benchmarks.flops import encode_flops


def test_a_text_of_one_token_meets_itself():
    # by hand: 2·(4·2² + 2·2·3) = 56 for the products, 4·1·2 = 8 for the attention
    assert encode_flops([1], layers=1, hidden=2, intermediate=3) == 64


def test_attention_grows_with_the_square_of_the_length():
    # 10 tokens: 10·56 + 10·10·8; 2 tokens: 2·56 + 2·2·8; in each of 3 layers
    assert encode_flops([10, 2], layers=3, hidden=2, intermediate=3) == 3 * (560 + 800 + 112 + 32)
