// In place of packages that the community's programs import and that the check does not need: the
// request and the reply of Next.js are those of the platform, and nothing talks to a chain.

export const NextRequest = Request;
export const NextResponse = Response;
export const ethers = undefined;
