import type { World } from './world';

/** Promise of docs/connectors.md that a check can break. */
export interface ContractPromise {
  /** Name in reports, such as `payout.repeat`. */
  id: string;
  promise: string;
  /** Whether nothing else may run at the same time. */
  alone?: true;
  /** @returns what was seen @throws Broken, NotApplicable */
  check: (world: World) => Promise<string>;
}
