import type { CallbackResource } from '../../domain/callback/callback';
import { ServiceError } from '../../domain/errors';
import { KINDS, LIFECYCLES, type ResourceStores } from '../../lifecycles';
import type { AttentionRow } from '../../store/resource';
import { toFirstRows } from '../paging';
import { type Act, type ActDeps, actOn } from './act';

export interface ShownAttention extends Omit<AttentionRow, 'since'> {
  id: string;
  resource: CallbackResource;
  /** ISO 8601, ms. */
  since: string;
}

interface AttentionPage {
  rows: ShownAttention[];
  has_more: boolean;
  next_cursor: string | null;
}

interface AttentionQuery {
  /** Also the acknowledged ones. */
  all: boolean;
  /** Id of the last row of the page before. */
  after?: string | undefined;
  limit: number;
}

/**
 * Lists what needs an operator, of all kinds, the oldest first.
 * @throws ServiceError `attention_not_found` when `after` is not the id of a row
 */
export async function listAttention(
  stores: ResourceStores,
  { all, after, limit }: AttentionQuery,
): Promise<AttentionPage> {
  const place = after === undefined ? undefined : parseId(after);
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
  const sorted = pages.flat().sort((a, b) => compareAge(a.row, b.row));
  const { rows: first, has_more } = toFirstRows(sorted, limit);
  const rows = first.map(({ kind, row }) => present(kind, row));
  return { rows, has_more, next_cursor: has_more ? (rows.at(-1)?.id ?? null) : null };
}

/**
 * Acknowledges one attention reason: it leaves the list and the metrics. A repeat changes nothing.
 * @throws ServiceError `attention_not_found` when it has ended; `money_in_suspense`, and those of
 *   `actOn`
 */
export async function acknowledgeAttention(
  deps: ActDeps,
  id: string,
  act: Pick<Act, 'operator' | 'reason' | 'by'>,
): Promise<{ resource: CallbackResource; resource_id: string; reason: string }> {
  const { kind, resource_id, since } = parseId(id);
  const document = await LIFECYCLES[kind].get(deps.stores, resource_id);
  const { attention = null, attention_since, acknowledged = [] } = document ?? {};
  const about = { resource: kind, resource_id };
  const known = acknowledged.find((entry) => entry.since === since);
  if (known !== undefined) return { ...about, reason: known.reason };
  if (attention === null || attention_since !== since) throw createNotFound(id);
  await actOn(deps, kind, resource_id, { what: 'acknowledge', attention, ...act });
  return { ...about, reason: attention };
}

function compareAge(a: AttentionRow, b: AttentionRow): number {
  return a.since - b.since || (a.resource_id < b.resource_id ? -1 : 1);
}

function present(resource: CallbackResource, { since, ...row }: AttentionRow): ShownAttention {
  const id = `${resource}:${row.resource_id}:${since}`;
  return { id, resource, ...row, since: new Date(since).toISOString() };
}

/** @throws ServiceError `attention_not_found` */
function parseId(id: string): { kind: CallbackResource; resource_id: string; since: number } {
  const [name, resource_id, since, ...more] = id.split(':');
  const kind = KINDS.find((each) => each === name);
  const isWellFormed = more.length === 0 && /^\d{1,15}$/.test(since ?? '');
  if (kind === undefined || !resource_id || !isWellFormed) throw createNotFound(id);
  return { kind, resource_id, since: Number(since) };
}

function createNotFound(id: string): ServiceError {
  const message = `There is no attention reason ${id}: \`attention list\` shows those there are.`;
  return new ServiceError('attention_not_found', message);
}
