import { z } from 'zod';
import { parseCreatedBefore } from '../cursor';
import type { Endpoint } from './endpoint';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 25;
const BY_PAGES =
  'Returns a page. For the next page, send `next_cursor` as `created_before`: no row is lost or ' +
  'repeated.';

/** @see docs/api.md#cancel-read-list */
const Limit = z
  .string()
  .regex(/^\d{1,4}$/, `must be an integer from 1 to ${LIMIT_MAX}`)
  .transform(Number)
  .pipe(z.int().min(1).max(LIMIT_MAX))
  .default(LIMIT_DEFAULT);

/** @see docs/api.md#cancel-read-list */
const CreatedBefore = z
  .string()
  .transform((text, ctx) => {
    const time = parseCreatedBefore(text);
    if (time === undefined) {
      ctx.addIssue({
        code: 'custom',
        message: 'must be an ISO 8601 timestamp with an offset, such as the last next_cursor',
      });
      return z.NEVER;
    }
    return time;
  })
  .pipe(z.string())
  .optional();

export const PAGE_FIELDS = { limit: Limit, created_before: CreatedBefore };

export function buildListQuery<const Statuses extends readonly string[]>(statuses: Statuses) {
  return z.strictObject({
    limit: Limit,
    status: z.enum(statuses).optional(),
    created_before: CreatedBefore,
  });
}

/** Newest first; `next_cursor` continues it. @see docs/api.md#cancel-read-list */
export function buildPageSchema<T extends z.ZodType>(item: T, id: string) {
  return z
    .object({
      object: z.literal('list'),
      data: z.array(item),
      has_more: z.boolean(),
      next_cursor: z.string().nullable(),
    })
    .meta({ id });
}

export function buildListSchema<T extends z.ZodType>(item: T, id: string) {
  return z.object({ object: z.literal('list'), data: z.array(item) }).meta({ id });
}

type ListEndpoint = Omit<Endpoint, 'method' | 'description' | 'success'> & {
  page: z.ZodType;
  example?: Endpoint['success']['example'];
};

export function listEndpoint<const E extends ListEndpoint>({
  page,
  example,
  codes = [],
  ...definition
}: E) {
  const sample = example === undefined ? {} : { example };
  const success = { status: 200, description: 'A page.', schema: page, ...sample } as const;
  const all: Endpoint['codes'] = [...codes, 'invalid_cursor'];
  return { ...definition, method: 'get', description: BY_PAGES, success, codes: all } as const;
}
