import { NamespaceNotFoundError } from '@temporalio/common';
import { findConfigFault, findConnectFault } from '../../../src/temporal/fault';

/** Builds an error of the gRPC client. */
function buildGrpcError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: {} });
}

test.each([
  [16, 'Request unauthorized.', /TEMPORAL_API_KEY, TEMPORAL_TLS_…\): Request unauthorized/],
  [7, 'Request unauthorized.', /TEMPORAL_API_KEY\): Request unauthorized/],
  [5, 'Namespace shop is not found.', /TEMPORAL_NAMESPACE/],
  [3, 'Namespace shop has no mapping defined for search attribute X', /`migrate` registers it/],
])('the gRPC error %i, "%s", is a fault of the configuration', (code, details, words) => {
  const error = buildGrpcError(code, details);
  expect(findConfigFault(error)?.message).toMatch(words);
  expect(findConfigFault(new Error('Failed', { cause: error }))?.cause).toBe(error);
});

test.each([
  [14, 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:7233'],
  [4, 'Deadline exceeded'],
  [8, 'namespace rate limit exceeded'],
  [5, 'workflow not found for ID: payment:1'],
  [3, 'WorkflowId is not set on request.'],
])('the gRPC error %i, "%s", is no fault of the configuration', (code, details) => {
  expect(findConfigFault(buildGrpcError(code, details))).toBeUndefined();
});

test('a TLS failure is a fault while a process connects, and none later', () => {
  const error = buildGrpcError(
    14,
    'No connection established. Last error: certificate has expired',
  );
  expect(findConnectFault(error)?.message).toMatch(/TEMPORAL_TLS_….*expired/);
  expect(findConfigFault(error)).toBeUndefined();
  const away = buildGrpcError(14, 'No connection established. Last error: connect ECONNREFUSED');
  expect(findConnectFault(away)).toBeUndefined();
});

test('a namespace that the SDK does not find is a fault of the configuration', () => {
  expect(findConfigFault(new NamespaceNotFoundError('shop'))?.message).toContain('namespace shop');
  expect(findConfigFault(undefined)).toBeUndefined();
});
