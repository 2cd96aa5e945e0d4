import type { Endpoint } from '../domain/wire/endpoint';

/** Link of an OpenAPI document: how another operation takes a value of this one's answer. */
interface Link {
  operationId: string;
  parameters?: Record<string, string>;
  requestBody?: Record<string, string>;
}

const ID = '$response.body#/id';

/** Fields of bodies that take the id of what another operation has created. */
const IN_BODIES: Readonly<Record<string, { operation: string; field: string }>> = {
  createPayment: { operation: 'createRefund', field: 'payment_id' },
  createRecipient: { operation: 'createPayout', field: 'recipient_id' },
};

/** Links from a created resource to the operations that take its id; undefined where there are none. */
export function linksOf(
  { creates, path, operation }: Endpoint,
  all: readonly Endpoint[],
): Record<string, Link> | undefined {
  if (creates !== true) return undefined;
  const itsId = `${path.replace(/^\/v1/, '')}/{id}`;
  const taking = all.filter((other) => `${other.path}/`.includes(`${itsId}/`));
  const links = taking.map(({ operation: operationId }): [string, Link] => [
    operationId,
    { operationId, parameters: { id: ID } },
  ]);
  const body = IN_BODIES[operation];
  const requestBody = body && { operationId: body.operation, requestBody: { [body.field]: ID } };
  return Object.fromEntries(body ? [...links, [body.operation, requestBody]] : links);
}
