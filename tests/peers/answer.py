"""The program behind the executors of the check: it multiplies, and judges products.

It answers a prompt with the last product in it, such as `12 * 12 = 144`, as text or as the JSON that the
prompt asks for. With the argument `lie` its products are wrong.
"""

import json
import re
import sys

PRODUCT = re.compile(r"(\d+) \* (\d+)(?: = (\d+))?")


def last_product(text):
    """The last product in a text with its result, and whether the text has that result."""
    found = PRODUCT.findall(text)
    if not found:
        return "I know only products.", True
    left, right, given = found[-1]
    result = int(left) * int(right) + (10 if "lie" in sys.argv else 0)
    return f"{left} * {right} = {result}", given in ("", str(result))


def answer(prompt):
    said, is_right = last_product(prompt)
    if '"verdict"' not in prompt:
        return said
    verdict = "normal" if '"abnormal"' in prompt else str(is_right).lower()
    return json.dumps({"verdict": verdict, "confidence": 0.9, "score": 9, "reasoning": said})


def main():
    asked = json.load(sys.stdin)
    if asked["endpoint"] == "judge":
        _, is_right = last_product(json.dumps(asked["request"]["candidate"]["output"]))
        codes = [] if is_right else [1020]
        return {"passed": is_right, "score": 0.9, "reason_codes": codes}
    inputs = asked["request"]["inputs"]
    if asked["request"]["task_type"] == "factcheck":
        _, is_right = last_product(inputs["claim"])
        output = {"verdict": str(is_right).upper(), "confidence": 0.9}
    else:
        output = {"answer": answer(inputs["prompt"])}
    return {"candidate_output": output}


json.dump(main(), sys.stdout)
