"""Two programs that add numbers with different faults, in place of language models; and the sums to
add.

    python adders.py NUMBER

This prints so many sums, with the answers of both. The small logs of this folder are made of them.
Both drop a carry in long sums, so that what is hard for one is hard for the other; `careful` drops
it later, but forgets the last digit of sums that end in 17.
"""

import json
import random
import re
import sys


def questions(number: int) -> list[dict[str, object]]:
    """Return sums of two numbers of 2 to 6 digits, three with each first number, which is their
    group.
    """
    draw = random.Random(228)  # noqa: S311
    rows = []
    for group in range(-(-number // 3)):
        first = draw.randrange(10, 10 ** draw.randint(2, 6))
        for _ in range(3):
            second = draw.randrange(10, 10 ** draw.randint(2, 6))
            rows.append(
                {
                    "question": f"{first} + {second} =",
                    "answer": str(first + second),
                    "group": f"group-{group}",
                }
            )
    return rows[:number]


def add(text: str, *, carries: int, forgets: str = "") -> str:
    """Return the sum that stands at the end of a text, computed with at most so many carries."""
    first, second = (number[::-1] for number in re.findall(r"(\d+) \+ (\d+) =", text)[-1])
    digits, carry = "", 0
    for place in range(max(len(first), len(second))):
        total = int(first[place : place + 1] or 0) + int(second[place : place + 1] or 0) + carry
        carry = int(total > 9 and carries > 0)
        carries -= carry
        digits += str(total % 10)
    result = (digits + "1" * carry)[::-1]
    return result[:-1] if forgets and result.endswith(forgets) else result


def grade(doc: dict[str, str], results: list[str]) -> dict[str, float]:
    """Return whether a sum is right, and the share of its digits that are, for `sums.yaml`."""
    return {
        "exact_match": float(results[0] == doc["answer"]),
        "digits": right_digits(results[0], doc["answer"]),
    }


def right_digits(found: str, answer: str) -> float:
    """Return the share of the digits of an answer that are right, counted from the last."""
    return sum(one == other for one, other in zip(found[::-1], answer[::-1], strict=False)) / len(
        answer
    )


PROGRAMS = {"hasty": {"carries": 2}, "careful": {"carries": 3, "forgets": "17"}}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = questions(int(sys.argv[1]))
    answers = {
        name: {row["question"]: add(row["question"], **how) for row in rows}
        for name, how in PROGRAMS.items()
    }
    print(json.dumps({"questions": rows, "answers": answers}))
