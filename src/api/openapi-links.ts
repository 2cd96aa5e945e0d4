import type { Endpoint } from '../domain/wire/endpoint';

/** Link of an OpenAPI document: how another operation takes a value of this one's answer. */
interface Link {
  operationId: string;
  parameters?: Record<string, string>;
  requestBody?: Record<string, string>;
}

const ID = '$response.body#/id';

/** Fields of bodies that take the id of what another operation has answered. */
const IN_BODIES: Readonly<Record<string, { operation: string; field: string }>> = {
  createPayment: { operation: 'createRefund', field: 'payment_id' },
  simulatePayment: { operation: 'createRefund', field: 'payment_id' },
  createRecipient: { operation: 'createPayout', field: 'recipient_id' },
};

/** Links from a resource in an answer to the operations that take its id; undefined where there are none. */
export function linksOf(
  { creates, path, operation }: Endpoint,
  all: readonly Endpoint[],
): Record<string, Link> | undefined {
  const body = IN_BODIES[operation];
  const itsId = `${path.replace(/^\/v1/, '')}/{id}`;
  const taking = creates ? all.filter((other) => `${other.path}/`.includes(`${itsId}/`)) : [];
  const links = taking.map(({ operation: operationId }): [string, Link] => [
    operationId,
    { operationId, parameters: { id: ID } },
  ]);
  if (body !== undefined) {
    const { operation: operationId, field } = body;
    links.push([operationId, { operationId, requestBody: { [field]: ID } }]);
  }
  return links.length === 0 ? undefined : Object.fromEntries(links);
}
