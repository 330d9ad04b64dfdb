// The answer of a round, with its agreement.
import { NotAgreed } from "./errors.js";
import type { Consensus, DelegateReply, Label, Outcome, Replica, VerdictReply } from "./schemas.js";

/** What an answer must be, beyond agreed. */
export interface Requirement {
  minConfidence?: number;
  verdict?: Label;
}

/** What the replicas of a round agreed on, if they did. */
export class Answer {
  /** The whole reply. */
  readonly reply: DelegateReply | VerdictReply;

  constructor(reply: DelegateReply | VerdictReply) {
    this.reply = reply;
  }

  /** The label that won, such as `VALID` or `TRUE`; `OK` for a delegated job; or null. */
  get verdict(): Label | null {
    if ("status" in this.reply) return this.reply.status === "OK" ? "OK" : null;
    return this.reply.verdict;
  }

  /** The output of a delegated job; null without agreement, and for other jobs. */
  get output(): unknown {
    return "output" in this.reply ? this.reply.output : null;
  }

  /** Estimated probability that the answer is right; 0 without an answer. */
  get confidence(): number {
    return this.reply.confidence;
  }

  get consensus(): Consensus {
    return this.reply.consensus;
  }

  get outcome(): Outcome {
    return this.reply.consensus.outcome;
  }

  /** The share of the replicas asked that support the answer. */
  get agreement(): number {
    return this.reply.consensus.agreement;
  }

  get isAgreed(): boolean {
    return this.outcome === "agreed";
  }

  get replicas(): Replica[] {
    return this.reply.replicas;
  }

  get roundId(): string {
    return this.reply.round_id;
  }

  get receiptId(): string {
    return this.reply.receipt_id;
  }

  /** Returns this answer if it is agreed, confident enough, and the given verdict. */
  require({ minConfidence = 0, verdict }: Requirement = {}): this {
    let problem: string | undefined;
    if (!this.isAgreed) {
      problem = `the replicas do not agree (outcome ${this.outcome})`;
    } else if (verdict !== undefined && this.verdict !== verdict) {
      problem = `the verdict is ${this.verdict}, not ${verdict}`;
    } else if (this.confidence < minConfidence) {
      problem = `the confidence is ${this.confidence}, below ${minConfidence}`;
    }
    if (problem !== undefined) throw new NotAgreed(`${problem}\n${this.describe()}`, this);
    return this;
  }

  /** The round in a few lines: what was decided, and what each replica said. */
  describe(): string {
    const replicas = this.replicas.map((replica) => {
      const why = replica.error ? ` (${replica.error.code}: ${replica.error.detail})` : "";
      return `  ${replica.session_id} says ${replica.verdict ?? replica.status}${why}`;
    });
    return [
      `verdict ${this.verdict}, outcome ${this.outcome}, agreement ${this.agreement}, confidence ${this.confidence}`,
      ...replicas,
      `round ${this.roundId}`,
    ].join("\n");
  }
}
