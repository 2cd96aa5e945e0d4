import { omitUndefined } from '../../src/domain/defined';
import type { LineMovement, SepaBook } from '../../src/service/sepa/book';
import type { Credit } from './messages';
import { buildFact, findFact, nameFact, putNamedFirst } from './movements';

interface CreditDeps {
  book: Pick<SepaBook, 'payments'>;
  now: () => Date;
}

/**
 * Counts each credit once. One with an unknown reference waits in its statement, for an operator.
 */
export async function applyCredits(deps: CreditDeps, credits: readonly Credit[]): Promise<void> {
  const references = new Set(credits.map(({ reference }) => reference));
  for (const reference of references) {
    const own = credits.filter((credit) => credit.reference === reference);
    await applyToPayment(deps, reference, own);
  }
}

async function applyToPayment(
  { book: { payments }, now }: CreditDeps,
  reference: string,
  own: readonly Credit[],
): Promise<void> {
  for (;;) {
    const payment = await payments.findOne({ reference });
    if (payment === null) return;
    const { _id, credits } = payment;
    const changed = addCredits(credits, own, now().toISOString());
    if (changed === undefined) return;
    const isNew = changed.length > credits.length;
    const report = isNew ? { unreported: true, report_batch: null } : {};
    const $set = { credits: changed, ...report };
    const applied = await payments.updateOne({ _id, credits }, { $set });
    // Otherwise another process has changed them.
    if (applied.matchedCount > 0) return;
  }
}

export function addCredits(
  credits: readonly LineMovement[],
  own: readonly Credit[],
  at: string,
): LineMovement[] | undefined {
  let facts = [...credits];
  let isChanged = false;
  for (const credit of putNamedFirst(credits, own)) {
    const { isReversal } = credit;
    const alike = facts.filter((fact) => fact.isReversal === isReversal);
    const known = findFact(alike, credit);
    const fresh = { ...buildFact(credit, null, at), ...omitUndefined({ isReversal }) };
    const next = known === undefined ? fresh : nameFact(known, credit);
    if (next === known) continue;
    isChanged = true;
    facts = known === undefined ? [...facts, next] : facts.map((f) => (f === known ? next : f));
  }
  return isChanged ? facts : undefined;
}
