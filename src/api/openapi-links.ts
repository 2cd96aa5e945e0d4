import type { Endpoint } from '../domain/wire/endpoint';

interface Link {
  operationId: string;
  parameters?: Record<string, string>;
  requestBody?: Record<string, string>;
}

const ID = '$response.body#/id';

/** Body fields that take the id of another operation's response. */
const IN_BODIES: Readonly<Record<string, { operation: string; field: string }>> = {
  createPayment: { operation: 'createRefund', field: 'payment_id' },
  simulatePayment: { operation: 'createRefund', field: 'payment_id' },
  createRecipient: { operation: 'createPayout', field: 'recipient_id' },
};

/** Builds links from a response to the operations that take its id. */
export function buildLinks(
  { creates, path, operation }: Endpoint,
  endpoints: readonly Endpoint[],
): Record<string, Link> | undefined {
  const body = IN_BODIES[operation];
  const idPath = `${path.replace(/^\/v1/, '')}/{id}`;
  const consumers = creates
    ? endpoints.filter((other) => `${other.path}/`.includes(`${idPath}/`))
    : [];
  const links = consumers.map(({ operation: operationId }): [string, Link] => [
    operationId,
    { operationId, parameters: { id: ID } },
  ]);
  if (body !== undefined) {
    const { operation: operationId, field } = body;
    links.push([operationId, { operationId, requestBody: { [field]: ID } }]);
  }
  return links.length === 0 ? undefined : Object.fromEntries(links);
}
