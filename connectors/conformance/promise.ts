import type { World } from './world';

export interface ContractPromise {
  id: string;
  promise: string;
  /** Excludes all others while it runs. */
  alone?: true;
  /** @returns observations @throws Broken, NotApplicable */
  check: (world: World) => Promise<string>;
}
