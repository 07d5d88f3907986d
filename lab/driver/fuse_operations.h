// SPDX-License-Identifier: Apache-2.0
// The FUSE operations of the driver's directory. Each gets its FuseServer as the session's user data.
#pragma once

struct fuse_lowlevel_ops;

namespace lab {

[[nodiscard]] fuse_lowlevel_ops fuse_operations();

}  // namespace lab
