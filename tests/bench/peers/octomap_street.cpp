/*
 * octomap_street.cpp - OctoMap beside us: insertPointCloud of the same LiDAR points, its default
 * probabilities.
 *
 *   octomap_street WORKLOAD VOXEL_M FRAMES MAX_RANGE_M
 *
 * One untimed pass, then a timed one into a new tree; one JSON line.  Frames are read outside the clock.
 */
#include <octomap/octomap.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace
{
struct Scan {
    octomap::Pointcloud points; // world
    octomap::point3d origin;
};

double cpu_ms()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

bool read_scans(const char *path, size_t n_max, std::vector<Scan> &scans)
{
    char magic[8];
    uint32_t head[4];
    float numbers[4], pose[12];
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool ok = fread(magic, 8, 1, file) == 1 && std::memcmp(magic, "VXWL0001", 8) == 0 &&
              fread(head, sizeof head, 1, file) == 1 && fread(numbers, sizeof numbers, 1, file) == 1 &&
              head[0] == 1;
    std::vector<float> image(ok ? size_t(head[2]) * head[3] : 0);
    for (uint32_t i = 0; ok && i < head[1] && i < n_max; i++) {
        ok = fread(pose, sizeof pose, 1, file) == 1 &&
             fread(image.data(), 4, image.size(), file) == image.size();
        Scan scan;
        scan.origin = octomap::point3d(pose[3], pose[7], pose[11]);
        for (uint32_t row = 0; ok && row < head[3]; row++) {
            const double e = numbers[1] + (double(numbers[0]) - numbers[1]) * row / (head[3] - 1);
            for (uint32_t column = 0; column < head[2]; column++) {
                const double a = -M_PI + 2 * M_PI * column / head[2],
                             r = image[size_t(row) * head[2] + column];
                const double p[3] = {std::cos(e) * std::cos(a) * r, std::cos(e) * std::sin(a) * r,
                                     std::sin(e) * r};
                float w[3];
                for (int k = 0; k < 3; k++)
                    w[k] = float(pose[4 * k] * p[0] + pose[4 * k + 1] * p[1] + pose[4 * k + 2] * p[2] +
                                 pose[4 * k + 3]);
                if (r > 0)
                    scan.points.push_back(w[0], w[1], w[2]);
            }
        }
        scans.push_back(scan);
    }
    fclose(file);
    return ok && !scans.empty();
}
} // namespace

int main(int argc, char **argv)
{
    std::vector<Scan> scans;
    if (argc != 5 || !read_scans(argv[1], strtoul(argv[3], nullptr, 10), scans)) {
        fprintf(stderr, "usage: octomap_street LIDAR_WORKLOAD VOXEL_M FRAMES MAX_RANGE_M\n");
        return 2;
    }
    std::vector<double> wall;
    double cpu = 0;
    for (int timed = 0; timed < 2; timed++) {
        octomap::OcTree tree(atof(argv[2]));
        for (const Scan &scan : scans) {
            const auto start = std::chrono::steady_clock::now();
            const double start_cpu = cpu_ms();
            tree.insertPointCloud(scan.points, scan.origin, atof(argv[4]));
            const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
            if (timed) {
                wall.push_back(ms.count());
                cpu += cpu_ms() - start_cpu;
            }
        }
    }
    double sum = 0;
    for (double ms : wall)
        sum += ms;
    std::sort(wall.begin(), wall.end());
    printf("{\"bench\":\"peer\",\"peer\":\"octomap\",\"frames\":%zu,\"median_ms\":%.4f,\"mean_ms\":%.4f,"
           "\"mean_cpu_ms\":%.4f}\n",
           wall.size(), wall[(wall.size() - 1) / 2], sum / double(wall.size()), cpu / double(wall.size()));
    return 0;
}
