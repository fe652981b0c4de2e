/* The Open Dynamics Engine on a job that borelli has written to a text file.

       ode_driver JOB SOLVER STEP MODE STEPS CONTACTS MOTORS MARKERS

   SOLVER    step | quick            dWorldStep, or dWorldQuickStep with 20 sweeps
   STEP      seconds
   MODE      free | reset | torques  run freely; poses put back on the recording each frame; joints led along the
                                     recording by unbounded motors whose torques are reported
   STEPS     how many; with a recording at most one less than its frames
   CONTACTS  MOTORS  MARKERS         0 or 1

   Prints one JSON object: step_us (CPU time of each step call), contacts (of each step), poses (of all bodies after each
   step, 7 numbers a body), torques (of all joint axes in each step, MODE torques only).

   The file: "bodies markers frames", then a line per body, a line per marker, and the frames. See peers_ode.py. */

#include <math.h>
#include <ode/ode.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* the settings of the common job: see job.py */
static const double GRAVITY = -9.81;
static const double JOINT_ERP = 0.2, JOINT_CFM = 1e-5;
static const double MARKER_ERP = 0.2, MARKER_CFM = 1e-4;
static const double CONTACT_ERP = 0.3, CONTACT_CFM = 1e-5, CONTACT_FRICTION = 1.0;
static const double MOTOR_TORQUE = 5.0;
static const int SWEEPS = 20;
enum { CONTACTS_PER_PAIR = 4 };

enum { NO_JOINT, BALL, UNIVERSAL, HINGE };
enum { GROUND = -1 };

typedef struct {
    int parent, joint, collides;
    double mass, inertia[3], center[3], half[3];
    double anchor[3], axes[2][3];
    dBodyID body;
    dJointID motor;
    int motor_axes;
    dJointFeedback feedback;
} Segment;

typedef struct {
    int segment;
    double offset[3];
    dBodyID body;
} Marker;

static Segment *segments;
static Marker *markers;
static double *recording; /* per frame: 7 numbers a segment, then 3 a marker */
static int segment_count, marker_count, frame_count;
static double ground_height;

static dWorldID world;
static dSpaceID space;
static dJointGroupID contact_group;
static dGeomID plane;
static int contacts_now;

/* ---- reading ---- */

static void fail(const char *message)
{
    fprintf(stderr, "ode_driver: %s\n", message);
    exit(1);
}

static double number(FILE *file)
{
    double value;
    if (fscanf(file, "%lf", &value) != 1)
        fail("the job file ends early");
    return value;
}

static void numbers(FILE *file, int count, double *out)
{
    for (int i = 0; i < count; i++)
        out[i] = number(file);
}

static void read_job(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail("cannot open the job file");
    segment_count = (int)number(file);
    marker_count = (int)number(file);
    frame_count = (int)number(file);
    ground_height = number(file);
    segments = calloc((size_t)segment_count, sizeof(Segment));
    markers = calloc((size_t)marker_count + 1, sizeof(Marker));
    for (int i = 0; i < segment_count; i++) {
        Segment *s = &segments[i];
        s->parent = (int)number(file);
        s->joint = (int)number(file);
        s->collides = (int)number(file);
        s->mass = number(file);
        numbers(file, 3, s->inertia);
        numbers(file, 3, s->center);
        numbers(file, 3, s->half);
        numbers(file, 3, s->anchor);
        numbers(file, 6, s->axes[0]);
    }
    for (int i = 0; i < marker_count; i++) {
        markers[i].segment = (int)number(file);
        numbers(file, 3, markers[i].offset);
    }
    int width = 7 * segment_count + 3 * marker_count;
    recording = malloc(sizeof(double) * (size_t)(frame_count * width + 1));
    numbers(file, frame_count * width, recording);
    fclose(file);
}

static const double *true_pose(int frame, int segment)
{
    return recording + (size_t)frame * (7 * segment_count + 3 * marker_count) + 7 * segment;
}

static const double *true_marker(int frame, int marker)
{
    return true_pose(frame, segment_count) + 3 * marker;
}

/* ---- building ---- */

static void add_joint(Segment *s)
{
    dBodyID parent = s->parent == GROUND ? 0 : segments[s->parent].body;
    const double *a = s->anchor, *first = s->axes[0], *second = s->axes[1];
    dJointID joint;
    if (s->joint == BALL) {
        joint = dJointCreateBall(world, 0);
        dJointAttach(joint, parent, s->body);
        dJointSetBallAnchor(joint, a[0], a[1], a[2]);
    } else if (s->joint == UNIVERSAL) {
        joint = dJointCreateUniversal(world, 0);
        dJointAttach(joint, parent, s->body);
        dJointSetUniversalAnchor(joint, a[0], a[1], a[2]);
        dJointSetUniversalAxis1(joint, first[0], first[1], first[2]);
        dJointSetUniversalAxis2(joint, second[0], second[1], second[2]);
    } else if (s->joint == HINGE) {
        joint = dJointCreateHinge(world, 0);
        dJointAttach(joint, parent, s->body);
        dJointSetHingeAnchor(joint, a[0], a[1], a[2]);
        dJointSetHingeAxis(joint, first[0], first[1], first[2]);
    }
}

static int parameter(int base, int axis)
{
    return base + axis * (dParamGroup2 - dParamGroup1);
}

/* A motor on every free axis of the joint, at rest, with a bounded torque. */
static void add_motor(Segment *s, double torque)
{
    enum { IN_FIRST_BODY = 1, IN_SECOND_BODY = 2 };
    static const double unit[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    s->motor_axes = s->joint == BALL ? 3 : s->joint == UNIVERSAL ? 2 : 1;
    s->motor = dJointCreateAMotor(world, 0);
    dJointAttach(s->motor, segments[s->parent].body, s->body);
    dJointSetAMotorMode(s->motor, dAMotorUser);
    dJointSetAMotorNumAxes(s->motor, s->motor_axes);
    dJointSetFeedback(s->motor, &s->feedback);
    for (int k = 0; k < s->motor_axes; k++) {
        const double *axis = s->joint == BALL ? unit[k] : s->axes[k];
        int fixed_in = s->joint == BALL || k == 1 ? IN_SECOND_BODY : IN_FIRST_BODY;
        dJointSetAMotorAxis(s->motor, k, fixed_in, axis[0], axis[1], axis[2]);
        dJointSetAMotorParam(s->motor, parameter(dParamVel, k), 0);
        dJointSetAMotorParam(s->motor, parameter(dParamFMax, k), torque);
    }
}

static void add_marker(Marker *m)
{
    const Segment *s = &segments[m->segment];
    double place[3];
    for (int i = 0; i < 3; i++)
        place[i] = s->center[i] + m->offset[i];
    m->body = dBodyCreate(world);
    dBodySetKinematic(m->body);
    dBodySetPosition(m->body, place[0], place[1], place[2]);
    dJointID tie = dJointCreateBall(world, 0);
    dJointAttach(tie, s->body, m->body);
    dJointSetBallAnchor(tie, place[0], place[1], place[2]);
    dJointSetBallParam(tie, dParamCFM, MARKER_CFM);
    dJointSetBallParam(tie, dParamERP, MARKER_ERP);
}

static void build(int with_motors, double motor_torque, int with_markers)
{
    world = dWorldCreate();
    space = dSimpleSpaceCreate(0);
    contact_group = dJointGroupCreate(0);
    dWorldSetGravity(world, 0, 0, GRAVITY);
    dWorldSetERP(world, JOINT_ERP);
    dWorldSetCFM(world, JOINT_CFM);
    dWorldSetQuickStepNumIterations(world, SWEEPS);
    plane = dCreatePlane(space, 0, 0, 1, ground_height);
    for (int i = 0; i < segment_count; i++) {
        Segment *s = &segments[i];
        dMass mass;
        dMassSetParameters(&mass, s->mass, 0, 0, 0, s->inertia[0], s->inertia[1], s->inertia[2], 0, 0, 0);
        s->body = dBodyCreate(world);
        dBodySetMass(s->body, &mass);
        dBodySetPosition(s->body, s->center[0], s->center[1], s->center[2]);
        if (s->collides)
            dGeomSetBody(dCreateBox(space, 2 * s->half[0], 2 * s->half[1], 2 * s->half[2]), s->body);
    }
    /* joints after all bodies: ODE notes the poses at the moment of attaching */
    for (int i = 0; i < segment_count; i++) {
        add_joint(&segments[i]);
        if (with_motors && segments[i].parent != GROUND)
            add_motor(&segments[i], motor_torque);
    }
    if (with_markers)
        for (int i = 0; i < marker_count; i++)
            add_marker(&markers[i]);
}

/* ---- stepping ---- */

static void touch(void *unused, dGeomID a, dGeomID b)
{
    (void)unused;
    if (a != plane && b != plane)
        return;
    dContact contacts[CONTACTS_PER_PAIR];
    int count = dCollide(a, b, CONTACTS_PER_PAIR, &contacts[0].geom, sizeof(dContact));
    for (int i = 0; i < count; i++) {
        dSurfaceParameters *surface = &contacts[i].surface;
        surface->mode = dContactSoftERP | dContactSoftCFM | dContactApprox1;
        surface->mu = CONTACT_FRICTION;
        surface->soft_erp = CONTACT_ERP;
        surface->soft_cfm = CONTACT_CFM;
        dJointID joint = dJointCreateContact(world, contact_group, &contacts[i]);
        dJointAttach(joint, dGeomGetBody(contacts[i].geom.g1), dGeomGetBody(contacts[i].geom.g2));
    }
    contacts_now += count;
}

/* The rotation vector that turns orientation `from` into `to`, world frame. */
static void turn_between(const double *from, const double *to, double *out)
{
    double w = to[0] * from[0] + to[1] * from[1] + to[2] * from[2] + to[3] * from[3];
    double v[3] = {
        from[0] * to[1] - to[0] * from[1] - (to[2] * from[3] - to[3] * from[2]),
        from[0] * to[2] - to[0] * from[2] - (to[3] * from[1] - to[1] * from[3]),
        from[0] * to[3] - to[0] * from[3] - (to[1] * from[2] - to[2] * from[1]),
    };
    double sine = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    double scale = sine < 1e-12 ? 2.0 : 2.0 * atan2(sine, fabs(w)) / sine;
    if (w < 0)
        scale = -scale;
    for (int i = 0; i < 3; i++)
        out[i] = scale * v[i];
}

/* Pose of a frame, and the velocity that carries it to the next. */
static void put_on_recording(int frame, int segment, double step)
{
    dBodyID body = segments[segment].body;
    const double *here = true_pose(frame, segment), *next = true_pose(frame + 1, segment);
    double turn[3];
    dQuaternion q = {here[3], here[4], here[5], here[6]};
    dBodySetPosition(body, here[0], here[1], here[2]);
    dBodySetQuaternion(body, q);
    dBodySetLinearVel(body, (next[0] - here[0]) / step, (next[1] - here[1]) / step, (next[2] - here[2]) / step);
    turn_between(here + 3, next + 3, turn);
    dBodySetAngularVel(body, turn[0] / step, turn[1] / step, turn[2] / step);
}

static void lead_markers(int frame, double step)
{
    for (int i = 0; i < marker_count; i++) {
        const double *p = true_marker(frame, i), *q = true_marker(frame + 1, i);
        dBodySetPosition(markers[i].body, p[0], p[1], p[2]);
        dBodySetLinearVel(markers[i].body, (q[0] - p[0]) / step, (q[1] - p[1]) / step, (q[2] - p[2]) / step);
    }
}

/* Sets every motor to the speed that brings its joint to the next frame; keeps the axes for reading the torques. */
static void lead_motors(int frame, double step, double (*axes_out)[3])
{
    double(*turns)[3] = malloc(sizeof(double[3]) * (size_t)segment_count);
    for (int i = 0; i < segment_count; i++)
        turn_between(dBodyGetQuaternion(segments[i].body), true_pose(frame + 1, i) + 3, turns[i]);
    for (int i = 0, row = 0; i < segment_count; i++) {
        Segment *s = &segments[i];
        for (int k = 0; k < s->motor_axes; k++, row++) {
            dVector3 axis;
            double speed = 0;
            dJointGetAMotorAxis(s->motor, k, axis);
            for (int c = 0; c < 3; c++) {
                axes_out[row][c] = axis[c];
                speed += axis[c] * (turns[i][c] - turns[s->parent][c]) / step;
            }
            /* ODE counts the first body's turning as positive */
            dJointSetAMotorParam(s->motor, parameter(dParamVel, k), -speed);
        }
    }
    free(turns);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* ---- writing ---- */

static void print_array(const char *name, const double *values, size_t count, const char *format, int last)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < count; i++) {
        if (i)
            putchar(',');
        printf(format, values[i]);
    }
    printf(last ? "]" : "],\n ");
}

static void quiet(int number, const char *message, va_list arguments)
{
    (void)number, (void)message, (void)arguments;
}

int main(int argc, char **argv)
{
    if (argc != 9)
        fail("needs JOB SOLVER STEP MODE STEPS CONTACTS MOTORS MARKERS");
    read_job(argv[1]);
    int quick = !strcmp(argv[2], "quick");
    double step = atof(argv[3]);
    int reset = !strcmp(argv[4], "reset"), find_torques = !strcmp(argv[4], "torques");
    int steps = atoi(argv[5]);
    int with_contacts = atoi(argv[6]), with_motors = atoi(argv[7]), with_markers = atoi(argv[8]);
    if (frame_count && steps > frame_count - 1)
        fail("more steps asked than the recording has");

    dInitODE2(0);
    dSetMessageHandler(quiet); /* QuickStep's complaints about long chains would drown the answer */
    dAllocateODEDataForThread(dAllocateMaskAll);
    build(with_motors || find_torques, find_torques ? dInfinity : MOTOR_TORQUE, with_markers);
    int axis_count = 0;
    for (int i = 0; i < segment_count; i++) {
        axis_count += segments[i].motor_axes;
        if (frame_count)
            put_on_recording(0, i, step);
    }
    if (find_torques)
        dBodySetKinematic(segments[0].body);

    double *times = malloc(sizeof(double) * (size_t)steps), *contacts = malloc(sizeof(double) * (size_t)steps);
    double *poses = malloc(sizeof(double) * (size_t)(steps * 7 * segment_count));
    double *torques = malloc(sizeof(double) * (size_t)(steps * axis_count + 1));
    double(*axes)[3] = malloc(sizeof(double[3]) * (size_t)(axis_count + 1));
    for (int n = 0; n < steps; n++) {
        for (int i = 0; reset && i < segment_count; i++)
            put_on_recording(n, i, step);
        if (find_torques) {
            lead_motors(n, step, axes);
            put_on_recording(n, 0, step);
        }
        if (with_markers)
            lead_markers(n, step);
        contacts_now = 0;
        if (with_contacts)
            dSpaceCollide(space, 0, touch);
        double start = cpu_us();
        if (quick)
            dWorldQuickStep(world, step);
        else
            dWorldStep(world, step);
        times[n] = cpu_us() - start;
        contacts[n] = contacts_now;
        dJointGroupEmpty(contact_group);
        for (int i = 0; i < segment_count; i++) {
            double *pose = poses + (size_t)(n * segment_count + i) * 7;
            for (int c = 0; c < 3; c++)
                pose[c] = dBodyGetPosition(segments[i].body)[c];
            for (int c = 0; c < 4; c++)
                pose[3 + c] = dBodyGetQuaternion(segments[i].body)[c];
        }
        if (find_torques)
            for (int i = 0, row = 0; i < segment_count; i++)
                for (int k = 0; k < segments[i].motor_axes; k++, row++) {
                    const dReal *t = segments[i].feedback.t2;
                    torques[n * axis_count + row] = t[0] * axes[row][0] + t[1] * axes[row][1] + t[2] * axes[row][2];
                }
    }
    printf("{");
    print_array("step_us", times, (size_t)steps, "%.3f", 0);
    print_array("contacts", contacts, (size_t)steps, "%.0f", 0);
    print_array("poses", poses, frame_count ? (size_t)(steps * 7 * segment_count) : 0, "%.17g", 0);
    print_array("torques", torques, find_torques ? (size_t)(steps * axis_count) : 0, "%.17g", 1);
    printf("}\n");
    dWorldDestroy(world);
    dCloseODE();
    return 0;
}
