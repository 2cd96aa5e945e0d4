import { MaxKey, MinKey } from 'mongodb';
import { UPDATED } from '../../store/resource';
import { type Difference, difference, type PostingRow } from './compare';
import { RESOURCE_CHECKS } from './resources';
import type { Page, ResourceCheck, Seen } from './rule';
import { all, type InSnapshot, type Read } from './snapshot';

/** Resources that one snapshot compares. */
const PAGE = 1_000;

/** Span of time in which resources moved; all of them where it has no beginning. */
export interface Span {
  /** ISO 8601, ms; empty for all. */
  since: string;
  until: string;
}

/** Compares all resources that moved in a span of time, in pages that are a snapshot each. */
export async function* compareResources(inSnapshot: InSnapshot, span: Span): AsyncGenerator<Page> {
  for (const check of RESOURCE_CHECKS) {
    let last: Page['last'];
    do {
      const after = last;
      const page = await inSnapshot((read) => nextPage(read, check, span, after));
      yield page;
      last = page.rows < PAGE ? undefined : page.last;
    } while (last !== undefined);
  }
}

async function nextPage(
  read: Read,
  check: ResourceCheck,
  { since, until }: Span,
  last: Page['last'],
): Promise<Page> {
  if (since === '') {
    const after = { _id: { $gt: last?._id ?? '' } };
    return await check.page(read, after, { sort: { _id: 1 }, limit: PAGE });
  }
  const min = {
    updated_at: last?.updated_at ?? since,
    _id: last ? `${last._id}\u0000` : new MinKey(),
  };
  const max = { updated_at: until, _id: new MaxKey() };
  return await check.page(read, {}, { hint: UPDATED.name, min, max, limit: PAGE });
}

/**
 * Looks for the resources of postings.
 * @param comparedSince resources that have moved since are compared by `compareResources`, all
 *   others here
 */
export async function compareOwners(
  read: Read,
  postings: readonly PostingRow[],
  comparedSince: string,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const check of RESOURCE_CHECKS) {
    const own = postings.filter(({ kind }) => check.postings.has(kind));
    if (own.length === 0) continue;
    const ids = { _id: { $in: [...new Set(own.map(({ resource_id }) => resource_id))] } };
    const projection = comparedSince === '' ? { _id: 1 } : { _id: 1, updated_at: 1 };
    const found = await all(
      read<Pick<Seen, '_id'> & { updated_at?: string }>(check.collection, ids, { projection }),
    );
    const there = new Set(found.map(({ _id }) => _id));
    for (const { _id, resource_id } of own) {
      if (there.has(resource_id)) continue;
      differences.push(difference('resource_missing', resource_id, _id, resource_id, null));
    }
    const others = found.filter(({ updated_at = '' }) => updated_at < comparedSince);
    if (others.length === 0) continue;
    const these = { _id: { $in: others.map(({ _id }) => _id) } };
    differences.push(...(await check.page(read, these, {})).differences);
  }
  return differences;
}
