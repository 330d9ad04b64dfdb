/** A typed client of a Jurat server. Executors are in `jurat/executor`. */
export { Answer, type Requirement } from "./answer.js";
export {
  Jurat,
  type AskOptions,
  type DelegateOptions,
  type FactcheckOptions,
  type RoundRequest,
  type ValidateOptions,
} from "./client.js";
export type { JuratOptions } from "./calls.js";
export {
  ApiError,
  ConnectionFailed,
  JuratError,
  NotAgreed,
  RequestTimeout,
  WaitTimeout,
} from "./errors.js";
export type { RoundEvent } from "./events.js";
export { VERSION } from "./schemas.js";
export type * from "./schemas.js";
