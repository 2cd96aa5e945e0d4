// biome-ignore lint/suspicious/noExplicitAny: as loose as Stripe's JSON.
export type Loose = any;

/** Object of Stripe, by its public documentation. References are IDs, unless expanded. */
export interface Thing {
  id: string;
  object: string;
  created: number;
  [field: string]: Loose;
}
