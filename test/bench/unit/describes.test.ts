import { countDescribes } from '../../../bench/measure/describes';

test('the questions about workflows are counted, of every namespace and kind of client', () => {
  const page = `# TYPE temporal_request_total counter
temporal_request_total{namespace="default",operation="DescribeWorkflowExecution",service_name="a"} 1200
temporal_request_total{namespace="default",operation="PollWorkflowTaskQueue",service_name="a"} 7
temporal_request_total{operation="DescribeWorkflowExecution",namespace="other"} 34
temporal_request_failure_total{operation="DescribeWorkflowExecution"} 5
`;
  expect(countDescribes(page)).toBe(1_234);
  expect(countDescribes('')).toBe(0);
});
