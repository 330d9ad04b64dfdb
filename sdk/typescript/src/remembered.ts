// Answers by execution id, so that a call that is repeated does not do its work twice.
const MOST_ANSWERS = 10_000;
const KEPT_MS = 3_600_000;

interface RememberedAnswer {
  request: string;
  madeAt: number;
  answer: Promise<unknown>;
}

/** The answers of the last hour. A repeat waits for the first call; a failure is forgotten. */
export class RememberedAnswers {
  readonly #answers = new Map<string, RememberedAnswer>();

  /** The answer to an execution, or undefined if its id had another request. */
  get(id: string, request: string, work: () => Promise<unknown>): Promise<unknown> | undefined {
    this.#forgetOld();
    const known = this.#answers.get(id);
    if (known) return known.request === request ? known.answer : undefined;
    const made = { request, madeAt: Date.now(), answer: work() };
    this.#answers.set(id, made);
    made.answer.catch(() => {
      if (this.#answers.get(id) === made) this.#answers.delete(id);
    });
    return made.answer;
  }

  #forgetOld(): void {
    for (const [id, { madeAt }] of this.#answers) {
      if (this.#answers.size < MOST_ANSWERS && Date.now() - madeAt <= KEPT_MS) return;
      this.#answers.delete(id);
    }
  }
}
