import type { CallbackResource } from '../../domain/banks/callback';
import { ServiceError } from '../../domain/errors';
import { describeRemedy, findRemedy } from '../../domain/operators/remedies';
import { KINDS, LIFECYCLES, type ResourceStores } from '../../lifecycles';
import type { Stores } from '../../store';
import type { AttentionPlace, AttentionRow } from '../../store/resource';
import type { WriteDeps } from '../access';
import { closeDays } from '../banks/statements/reconciliation';
import {
  acknowledgeNotRepeated,
  acknowledgeRefusal,
  listLinesOpen,
  listNotRepeated,
  listRefusedStatements,
} from '../banks/statements/refusals';
import { type Page, toPage } from '../paging';
import { type Act, type ActDeps, actOn } from './act';

export interface ShownAttention extends Omit<AttentionRow, 'since'> {
  id: string;
  resource: CallbackResource | 'bank_account' | 'sepa_file';
  /** ISO 8601, ms. */
  since: string;
  /** Sentences; null where the reason is not known to this version. */
  remedy: string | null;
}

interface AttentionQuery {
  now: Date;
  /** Acknowledged ones, too. */
  all: boolean;
  /** Last row of the page before. */
  after?: string | undefined;
  limit: number;
}

/**
 * Lists the oldest first.
 * @throws ServiceError `attention_not_found` when `after` is not the id of a row
 */
export async function listAttention(
  stores: ResourceStores & Pick<Stores, 'bankAccounts' | 'capabilities' | 'statements'>,
  { all, after, limit, now }: AttentionQuery,
): Promise<Page<ShownAttention>> {
  const place = after === undefined ? undefined : parsePlace(after);
  const [refused, notRepeated, linesOpen, awaited] = await Promise.all([
    listRefusedStatements(stores, { all, after: place, limit: limit + 1 }),
    listNotRepeated(stores, { all, now }),
    listLinesOpen(stores, now),
    // Files that a bank may hold, or is late with, as their connectors report them.
    stores.capabilities.listAwaited(),
  ]);
  const pages = await Promise.all(
    KINDS.map(async (kind) => {
      const store = stores[LIFECYCLES[kind].collection];
      const [open, acknowledged] = await Promise.all([
        store.listAttention(place, limit + 1),
        all ? store.listAcknowledged(place, limit + 1) : [],
      ]);
      return [...open, ...acknowledged].map((row) => ({ kind, row }));
    }),
  );
  const ofAccounts = [...refused, ...notRepeated, ...linesOpen].map((row) => ({
    kind: 'bank_account' as const,
    row,
  }));
  const ofFiles = awaited.map(({ file_id: resource_id, reason, since, amount, results }) => ({
    kind: 'sepa_file' as const,
    row: {
      ...{ resource_id, reason, since, amount, currency: 'EUR' },
      ...{ acknowledged: false, results },
    },
  }));
  const isAfter = ({ since, resource_id }: AttentionPlace) =>
    place === undefined ||
    since > place.since ||
    (since === place.since && resource_id > place.resource_id);
  const sorted = [...pages.flat(), ...ofAccounts, ...ofFiles]
    .filter(({ row }) => isAfter(row))
    .sort(({ row: a }, { row: b }) => {
      return a.since - b.since || (a.resource_id < b.resource_id ? -1 : 1);
    });
  const shown = sorted.map(({ kind: resource, row: { since, ...row } }) => {
    const remedy = findRemedy(resource, row.reason);
    return {
      id: `${resource}:${row.resource_id}:${since}`,
      resource,
      ...row,
      since: new Date(since).toISOString(),
      remedy: remedy === undefined ? null : describeRemedy(remedy),
    };
  });
  return toPage(shown, limit, ({ id }) => id);
}

/**
 * Removes a reason from list and metrics. A repeat changes nothing.
 * @throws ServiceError `attention_not_found` when it has ended; `wrong_state` of a file;
 * `money_in_suspense`, and those of
 * `actOn`
 */
export async function acknowledgeAttention(
  deps: ActDeps,
  id: string,
  act: Pick<Act, 'operator' | 'reason' | 'by'>,
): Promise<{ resource: CallbackResource; resource_id: string; reason: string }> {
  const { name, resource_id, since } = parsePlace(id);
  if (name === 'sepa_file') {
    const message =
      `Run \`sepa file released ${resource_id}\` once it was released at the bank; one that is ` +
      'overdue ends with the results of its payouts.';
    throw new ServiceError('wrong_state', message);
  }
  const kind = KINDS.find((each) => each === name);
  if (kind === undefined) throw createNotFound(id);
  const document = await LIFECYCLES[kind].get(deps.stores, resource_id);
  const { attention = null, attention_since, acknowledged = [] } = document ?? {};
  const about = { resource: kind, resource_id };
  const known = acknowledged.find((entry) => entry.since === since);
  if (known !== undefined) return { ...about, reason: known.reason };
  if (attention === null || attention_since !== since) throw createNotFound(id);
  await actOn(deps, kind, resource_id, { what: 'acknowledge', attention, ...act });
  return { ...about, reason: attention };
}

export function isOfBankAccount(id: string): boolean {
  return parsePlace(id).name === 'bank_account';
}

/**
 * Acknowledges a refused or missing statement, or credits that no statement has. A repeat changes
 * nothing.
 * @throws ServiceError `attention_not_found`, `statement_missing`, `money_in_suspense`
 */
export async function acknowledgeOfBankAccount(
  deps: WriteDeps,
  id: string,
  act: Pick<Act, 'operator' | 'reason'>,
) {
  const { resource_id, since } = parsePlace(id);
  const place = { bank_account_id: resource_id, since };
  const reason =
    (await acknowledgeRefusal(deps, place, act)) ??
    (await acknowledgeNotRepeated(deps, place, act));
  if (reason === undefined) {
    const rows = await listLinesOpen(deps.stores, deps.now());
    if (!rows.some((row) => row.resource_id === resource_id && row.since === since)) {
      throw createNotFound(id);
    }
    const message =
      'The money of its lines is in suspense until `statement match` says what it is.';
    throw new ServiceError('money_in_suspense', message);
  }
  // A statement that does not exist keeps its day open no longer.
  const account = await deps.stores.bankAccounts.get(resource_id);
  if (account !== null) await closeDays(deps, account);
  return { resource: 'bank_account' as const, resource_id, reason };
}

function parsePlace(id: string): { name: string } & AttentionPlace {
  const [name = '', resource_id, since, ...more] = id.split(':');
  const isKnown =
    ['bank_account', 'sepa_file'].includes(name) || KINDS.some((kind) => kind === name);
  const isWellFormed = isKnown && more.length === 0 && /^\d{1,15}$/.test(since ?? '');
  if (!resource_id || !isWellFormed) throw createNotFound(id);
  return { name, resource_id, since: Number(since) };
}

function createNotFound(id: string): ServiceError {
  const message = `There is no attention reason ${id}: \`attention list\` shows those there are.`;
  return new ServiceError('attention_not_found', message);
}
