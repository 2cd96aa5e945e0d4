const DESCRIBES = /^temporal_request_total\{.*operation="DescribeWorkflowExecution".*\} (\d+)/gm;

/** Counts the workflows that a process asked Temporal about, on its page of metrics. */
export function countDescribes(page: string): number {
  return [...page.matchAll(DESCRIBES)].reduce((sum, [, count]) => sum + Number(count), 0);
}
