import { omitUndefined } from '../../../domain/defined';
import type { UnclearedEntry } from '../../../ledger/uncleared';
import type { LineDocument } from '../../../store/statement-lines';
import type { StatementDocument } from '../../../store/statements';

const DAY_MS = 86_400_000;

/** A future day counts 0. */
function countDays(day: string, now: Date): number {
  return Math.max(0, Math.floor((now.getTime() - Date.parse(day)) / DAY_MS));
}

export type ShownLine = ReturnType<typeof presentLine>;
export type ShownEntry = ReturnType<typeof presentEntry>;

export function presentLine(line: LineDocument, now: Date) {
  const { _id: id, iban: account, day, value_date, amount, currency } = line;
  const { reference, bank_reference, kind, fee, status, entries, different, owner } = line;
  const { clearing, bank_fees } = line.parts;
  const isBooked = status === 'matched' || status === 'booked' || status === 'open';
  return {
    ...{ id, account, day, value_date, amount, currency, reference, bank_reference, kind, fee },
    /** Minor units in suspense. */
    unmatched: isBooked ? amount - clearing - bank_fees : 0,
    ...{ status, entries, different, age_days: countDays(day, now), owner },
  };
}

export function presentEntry(entry: UnclearedEntry, now: Date) {
  const { entry_id, kind, resource_id: resource, amount, currency, day, bank_reference } = entry;
  const age_days = countDays(day, now);
  return { entry_id, kind, resource, amount, currency, day, bank_reference, age_days };
}

export function presentStatement(statement: StatementDocument) {
  const { _id: id, statement_id, kind, connector, livemode, iban: account } = statement;
  const { currency, from_day, to_day: day, opening, closing, lines } = statement;
  const { imported_at, completed_at, closed_at, abandoned_at } = statement;
  const env = livemode ? 'live' : 'sandbox';
  return {
    ...{ id, statement_id, kind, connector, env, account, currency, from_day, day },
    ...{ opening, closing, lines, imported_at, complete: completed_at !== null },
    closed: closed_at !== null,
    ...omitUndefined({ abandoned_at }),
  };
}
