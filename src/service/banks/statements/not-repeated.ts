import { inTransaction } from '../../../base/mongo';
import { ANNOUNCED_DAYS, addDays, announcedBefore, NOT_REPEATED } from '../../../domain/statement';
import type { Stores } from '../../../store';
import type { AttentionPlace, AttentionRow } from '../../../store/resource';
import type { WriteDeps } from '../../deps';

/** Time from which an announced movement of a day needs an operator, ms since the epoch. */
const getDue = (day: string) => Date.parse(addDays(day, ANNOUNCED_DAYS + 1));

/** Lists credits that only a notification has, as attention reasons of their bank accounts. */
export async function listNotRepeated(
  { statements }: Pick<Stores, 'statements'>,
  { all, after, now }: { all: boolean; after: AttentionPlace | undefined; now: Date },
): Promise<AttentionRow[]> {
  const before = announcedBefore(now);
  const [open, acknowledged] = await Promise.all([
    statements.sumNotRepeated(before),
    all ? statements.sumNotRepeated(before, true) : [],
  ]);
  const present = (isAcknowledged: boolean) => (row: (typeof open)[number]) => ({
    ...{ resource_id: row.bank_account_id, reason: NOT_REPEATED, since: getDue(row.day) },
    ...{ amount: row.amount, currency: row.currency, acknowledged: isAcknowledged },
  });
  const rows = [...open.map(present(false)), ...acknowledged.map(present(true))];
  return rows.filter(
    ({ since, resource_id }) =>
      after === undefined ||
      since > after.since ||
      (since === after.since && resource_id > after.resource_id),
  );
}

/** @returns the reason; undefined where no credit of an account became due then */
export async function acknowledgeNotRepeated(
  { mongo, stores, audit, now }: WriteDeps,
  { bank_account_id, since }: { bank_account_id: string; since: number },
  { operator, reason }: { operator: string; reason: string },
): Promise<string | undefined> {
  const before = announcedBefore(now());
  const isRow = (row: { bank_account_id: string; day: string }) =>
    row.bank_account_id === bank_account_id && getDue(row.day) === since;
  const row = (await stores.statements.sumNotRepeated(before)).find(isRow);
  if (row === undefined) {
    const isDone = (await stores.statements.sumNotRepeated(before, true)).some(isRow);
    return isDone ? NOT_REPEATED : undefined;
  }
  const { livemode, day, amount, currency } = row;
  return await inTransaction(mongo, async (session) => {
    const acknowledged = { operator, reason, at: now().toISOString() };
    const lines = await stores.statements.acknowledgeNotRepeated(row, acknowledged, session);
    // Another operator was faster.
    if (lines === 0) return NOT_REPEATED;
    const after = { day, lines, amount, currency, operator, reason };
    const about = { account_id: null, livemode, target: bank_account_id };
    await audit({ act: 'statement.not_repeated_acknowledged', ...about, after }, session);
    return NOT_REPEATED;
  });
}
