"""An executor that checks claims by the sources it is given. Run `python3 factchecker.py 8787`.

It quotes: a claim is TRUE if a sentence of a source says the same in the same words, FALSE if it says
the same with another number or the opposite, and UNSURE in all other cases. The HTTP part is that of
`executor.py`, in the same folder. A second argument is the name of the model.
"""
import re
import sys
from decimal import Decimal, InvalidOperation

import executor

executor.CAPABILITIES.update(
    {
        # It reads no news, so it does not list "factcheck:realtime", and Jurat does not ask it.
        "task_types": ["factcheck"],
        "provider_family": "my-factchecker",
        "model_id": "quotes-v1",
        "policies": [],
    }
)
ARTICLES = {"a", "an", "the"}
NEGATIONS = {"no", "not", "never", "neither", "nor", "without"}
# A sentence with one of these does not claim what it says.
HEDGES = set(
    "about almost allegedly approximately believe believed could false if may might nearly perhaps "
    "possibly probably reportedly rumoured said say says should supposedly untrue would".split()
)
TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
CLAUSE = re.compile(r"[;:!]|[.,](?!\d)|\s(?:and|but)\s")


def number(text):
    """The value of a number, or None. Commas are read as separators of thousands only."""
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    try:
        return Decimal(text).normalize()
    except InvalidOperation:
        return None


def words(text):
    """The words and numbers of a text, without articles and case."""
    found = []
    for token in TOKEN.findall(text.casefold().replace("n't", " not")):
        value = number(token) if token[0].isdigit() else None
        if token not in ARTICLES:
            found.append(token if value is None else value)
    return found


def statements(text):
    """Every sentence of a text that claims something, and every clause of it."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        is_hedged = HEDGES & {word for word in words(sentence) if isinstance(word, str)}
        if not is_hedged and not sentence.rstrip().endswith("?"):
            yield sentence.strip(), sentence
            for clause in CLAUSE.split(sentence):
                yield sentence.strip(), clause


def compare(claim, statement):
    """True if the statement begins with the claim, False if it contradicts it, None otherwise."""
    same = lambda left, right: (isinstance(left, Decimal) and isinstance(right, Decimal)) or left == right
    plain = lambda tokens: [token for token in tokens if token not in NEGATIONS]
    negations = lambda tokens: sum(token in NEGATIONS for token in tokens)
    start, rest = statement[: len(claim)], statement[len(claim) :]
    if len(start) == len(claim) and all(map(same, claim, start)):
        return None if negations(rest) else claim == start
    if plain(claim) == plain(statement) and negations(claim) != negations(statement):
        return (negations(claim) - negations(statement)) % 2 == 0
    return None


def named_sources(context):
    """The sources of a request, each with its name: texts, or objects with a `text`."""
    given = context.get("sources", []) if isinstance(context, dict) else []
    for index, source in enumerate(given if isinstance(given, list) else []):
        if isinstance(source, str):
            yield f"source {index + 1}", source
        elif isinstance(source, dict) and isinstance(source.get("text"), str):
            yield str(source.get("url") or source.get("title") or f"source {index + 1}"), source["text"]


def check(claim, context):
    wanted, found, read = words(claim), {True: [], False: []}, 0
    for name, text in named_sources(context):
        read += 1
        for sentence, statement in statements(text):
            verdict = compare(wanted, words(statement)) if wanted else None
            quote = {"source": name, "quote": sentence}
            if verdict is not None and quote not in found[verdict]:
                found[verdict].append(quote)
    if not read:
        reason, verdict = "no sources were given in context.sources", "UNSURE"
    elif found[True] and found[False]:
        reason, verdict = "the sources contradict each other", "UNSURE"
    elif found[True]:
        reason, verdict = "a source says so", "TRUE"
    elif found[False]:
        reason, verdict = "a source says otherwise", "FALSE"
    else:
        reason, verdict = "the sources do not say", "UNSURE"
    confidence = 0.5 if verdict == "UNSURE" else 0.95
    quotes = found[True] + found[False]
    return {"verdict": verdict, "confidence": confidence, "reasons": [reason], "sources": quotes}


def answer(task_type, inputs, output_schema):
    return check(str(inputs.get("prompt") or inputs.get("claim") or ""), inputs.get("context"))


# A bare claim comes without sources, so `/verify` cannot tell.
executor.answer, executor.judge = answer, lambda claim: None

if __name__ == "__main__":
    executor.main(sys.argv[1:])
